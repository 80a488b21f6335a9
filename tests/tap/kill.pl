# Crashes while clients are at it: kill -9 of the postmaster or of one backend, and an immediate stop, each also a
# second time before the lease of the first is over. What clients got before is never issued again.
use strict;
use warnings;

use Snowflake;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'usleep';

# What is committed asynchronously stays in the server's memory, and is lost: the WAL writer sleeps.
my $node = new_cluster('kill', 'autovacuum = off', 'wal_writer_delay = 10s', 'restart_after_crash = on',
	'max_connections = 30', 'log_statement = none');
my %largest;

$node->safe_psql('postgres', q{
	CREATE SEQUENCE plain;
	CREATE SEQUENCE cached CACHE 64;
	CREATE SEQUENCE stepped INCREMENT 50;
	CREATE SEQUENCE ahead;
	CREATE SEQUENCE ahead_cached CACHE 64;
	CREATE TABLE rows (seq text, id bigint, PRIMARY KEY (seq, id));
});
my @seqs = qw(plain cached stepped ahead ahead_cached);
if ($node->pg_version >= 15)
{
	$node->safe_psql('postgres', 'CREATE UNLOGGED SEQUENCE unlogged');
	push @seqs, 'unlogged';
}
# There the clock cannot tell old IDs from new ones: only WAL can.
$node->safe_psql('postgres', "SELECT setval('$_', snowflake_min(clock_timestamp() + interval '1 h'))")
  foreach qw(ahead ahead_cached);

# A statement for each of many answers, each in its own transaction.
sub statements
{
	my ($statement) = @_;
	return "SELECT '$statement' FROM generate_series(1, 200000) \\gexec\n";
}

sub calls { my ($seq, $size) = @_; return statements("SELECT snowflake_nextval(''$seq'') FROM generate_series(1, $size)"); }

sub inserts
{
	my ($seq, $size) = @_;
	return statements("INSERT INTO rows SELECT ''$seq'', snowflake_nextval(''$seq'') FROM generate_series(1, $size) RETURNING id");
}

# Which sequence a client calls, and what it runs.
my @writers = (
	[ 'plain', calls('plain', 1) ],
	[ 'plain', inserts('plain', 5) ],
	[ 'cached', calls('cached', 20) ],
	[ 'cached', inserts('cached', 20) ],
	(map { [ $_, calls($_, 10) ] } grep { !/^(plain|cached)$/ } @seqs),
	# The lock tells that it has got its first ID.
	[ 'temporary', "CREATE TEMP SEQUENCE temporary;\nSELECT snowflake_nextval('temporary');\nSELECT pg_advisory_lock(1);\n"
		  . calls('temporary', 10) ]);

sub positions
{
	my $sum = join ', ', map { "(SELECT last_value FROM $_)" } @seqs;
	return split /\|/, $node->safe_psql('postgres', "SELECT $sum");
}

# Runs the writers until each has got IDs, lets the server crash, and tests what they got.
sub crash_under_load
{
	my ($name, $crash, $checkpoint, $commit) = @_;
	my @before = positions();
	my $last = $node->safe_psql('postgres', 'SELECT coalesce(max(id), 0) FROM rows');
	my @clients = start_clients($node, map { "SET synchronous_commit = $commit;\n$_->[1]" } @writers);
	# Past the first ID, and of each client: the table's two, and the temporary sequence's own.
	my $moved = join ' AND ',
	  (map { "(SELECT last_value > $before[$_] + (2::bigint << 22) FROM $seqs[$_])" } 0 .. $#seqs),
	  "(SELECT count(DISTINCT seq) = 2 FROM rows WHERE id > $last)",
	  "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory')";
	$node->poll_query_until('postgres', "SELECT $moved") or die 'the clients do not start';
	$node->safe_psql('postgres', 'CHECKPOINT') if $checkpoint;
	$crash->();
	my @lists = finish_clients(@clients);
	# All of them lost their server, so the one that answers now is not the one from before the crash.
	come_back($crash);

	foreach my $seq (@seqs)
	{
		my @of_seq = map { $lists[$_] } grep { $writers[$_][0] eq $seq } 0 .. $#writers;
		cmp_ok(ids_are_later(\%largest, $seq, "$name, $seq", @of_seq), '>', 0, "$name, $seq: clients were at it");
	}
	cmp_ok(ids_are_new({}, "$name, temporary", $lists[-1]), '>', 0, "$name, temporary: the client was at it");
	return if $commit eq 'off';
	foreach my $n (1, 3)
	{
		my %there = map { $_ => 1 }
		  split /\n/, $node->safe_psql('postgres', "SELECT id FROM rows WHERE seq = '$writers[$n][0]'");
		is(scalar(grep { !$there{$_} } @{ $lists[$n] }), 0, "$name, $writers[$n][0]: every row that was committed is there");
	}
	return;
}

# A few calls by one session: it gets them as soon as the server is up, while the state is ahead of the clock.
sub crash_again
{
	my ($name, $crash, $checkpoint, $commit) = @_;
	my $sql = "SET synchronous_commit = $commit;\n";
	$sql .= join '', map { "SELECT '$_ ' || snowflake_nextval('$_') FROM generate_series(1, 200);\n" } @seqs;
	$sql .= 'CHECKPOINT;' if $checkpoint;
	$sql .= "SELECT '$_ ' || snowflake_nextval('$_');\n" foreach @seqs;
	my $answer = $node->safe_psql('postgres', $sql);
	if ($crash == \&kill_backend)
	{
		# One that is there to be killed, and that notices it.
		my @idle = start_clients($node, "SELECT pg_sleep(600);\n");
		$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'});
		$crash->();
		finish_clients(@idle);
	}
	else
	{
		$crash->();
	}
	come_back($crash);
	foreach my $seq (@seqs)
	{
		my @ids = $answer =~ /^$seq (\d+)$/mg;
		is(ids_are_later(\%largest, $seq, "$name, $seq", \@ids), 201, "$name, $seq: it got its IDs");
	}
	return;
}

# Starts the server, unless it starts itself.
sub come_back
{
	my ($crash) = @_;
	return start_again($node) if $crash != \&kill_backend;
	for (1 .. 1000)
	{
		return if system('pg_isready', '-q', '-d', $node->connstr('postgres')) == 0;
		usleep(100_000);
	}
	die 'no server after the crash';
}

sub kill_postmaster { return $node->kill9; }
sub stop_at_once { return $node->stop('immediate'); }

sub kill_backend
{
	my $pid = $node->safe_psql('postgres', q{
		SELECT pid FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND query ~ '^(SELECT|INSERT)'
		ORDER BY random() LIMIT 1});
	return kill(9, $pid) || die 'no backend to kill';
}

my @crashes = ([ 'kill -9 of the postmaster', \&kill_postmaster ],
	[ 'kill -9 of a backend', \&kill_backend ],
	[ 'immediate stop', \&stop_at_once ]);
my @cases;
foreach my $commit ('on', 'off')
{
	foreach my $checkpoint (0, 1)
	{
		push @cases, map { [ @$_, $checkpoint, $commit ] } @crashes;
	}
}
# Two crashes a round.
foreach my $round (1 .. rounds(12, 48))
{
	my ($kind, $crash, $checkpoint, $commit) = @{ $cases[ ($round - 1) % @cases ] };
	my $name = "$round: $kind, checkpoint $checkpoint, synchronous_commit $commit";
	crash_under_load($name, $crash, $checkpoint, $commit);
	crash_again("$name, again", $crash, $checkpoint, $commit);
}

# A repeat among the rows would have been refused by their primary key.
my @errors = grep { /ERROR:/ } split /\n/, slurp_file($node->logfile);
is(join("\n", @errors), '', 'no statement failed but by a crash');

stop_clean($node);
done_testing();
