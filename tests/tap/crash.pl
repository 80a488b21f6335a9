# What a crash leaves behind: nothing is issued twice, by us or by PostgreSQL's own nextval.
use strict;
use warnings;

use Snowflake;
use Test::More;

my $node = new_cluster('crash', 'wal_level = minimal', 'max_wal_senders = 0', 'autovacuum = off',
	'wal_writer_delay = 10s', 'ignore_checksum_failure = on');
my %seen;

# One ID, kept outside the server.
sub call
{
	my ($seq) = @_;
	return $node->safe_psql('postgres', "SELECT snowflake_nextval('$seq')");
}

# PostgreSQL's nextval on a sequence of ours: it takes log_cnt for the values that it need not log.
foreach my $increment (1, 50)
{
	$node->safe_psql('postgres', "CREATE SEQUENCE core$increment INCREMENT $increment");
	my $ours = call("core$increment");
	my $largest = $node->safe_psql('postgres',
		"SELECT max(nextval('core$increment')) FROM generate_series(1, 100000)");
	crash($node);
	my $next = $node->safe_psql('postgres', "SELECT nextval('core$increment')");
	cmp_ok($next, '>', $largest, "INCREMENT $increment: nextval repeats nothing after a crash");
	cmp_ok(call("core$increment"), '>', $next, "INCREMENT $increment: nor do we");
}

# Twice within a lease, with and without a checkpoint just before.
$node->safe_psql('postgres', 'CREATE SEQUENCE s');
foreach my $checkpoint (0, 1)
{
	foreach my $round (1 .. 2)
	{
		my @ids = map { call('s') } 1 .. 3;
		$node->safe_psql('postgres', 'CHECKPOINT') if $checkpoint;
		push @ids, call('s');
		crash($node);
		ids_are_new(\%seen, "crash $round, checkpoint $checkpoint", \@ids, [ map { call('s') } 1 .. 3 ]);
	}
}

# The state resumes past the lease: later than all it could have issued, whatever the clock says then.
my $last = call('s');
crash($node);
cmp_ok($node->safe_psql('postgres', 'SELECT last_value FROM s'), '>', $last, 'the logged state is ahead of the last ID');
is($node->safe_psql('postgres', 'SELECT log_cnt FROM s'), 0, 'and seen as not ours');
cmp_ok(call('s'), '>', $last, 'the next ID is later');

# Ahead of the clock no ID is seen before its WAL is on disk: after a crash the clock would not tell it from a new one.
my $ahead = $node->safe_psql('postgres', q{
	CREATE SEQUENCE ahead;
	SELECT setval('ahead', snowflake_min(clock_timestamp() + interval '1 h'));
	SET synchronous_commit = off;
	SELECT snowflake_nextval('ahead');
});
($ahead) = $ahead =~ /(\d+)$/;
crash($node);
cmp_ok(call('ahead'), '>', $ahead, 'ahead of the clock, with synchronous_commit = off');

# Nor is one that the last checkpoint forgot: replay starts there.
$node->safe_psql('postgres', 'CHECKPOINT');
$ahead = call('ahead');
crash($node);
cmp_ok(call('ahead'), '>', $ahead, 'ahead of the clock, after a checkpoint');

# ALTER ... START copies the state into another file, with a log_cnt that no record in WAL covers there.
$node->safe_psql('postgres', 'ALTER SEQUENCE ahead START 7');
$ahead = call('ahead');
crash($node);
cmp_ok(call('ahead'), '>', $ahead, 'ahead of the clock, in a file that ALTER made');

# With wal_level = minimal nothing is logged of a sequence until the transaction that made it commits.
my @ids = split /\n/, $node->safe_psql('postgres', q{
	BEGIN;
	CREATE SEQUENCE m;
	SELECT snowflake_nextval('m') FROM generate_series(1, 1000);
	COMMIT;
	SELECT snowflake_nextval('m') FROM generate_series(1, 1000);
});
my $logged = $ids[-1];
crash($node);
cmp_ok($node->safe_psql('postgres', 'SELECT last_value FROM m'), '>', $logged,
	'a sequence made under wal_level = minimal is leased from its commit on');
ids_are_new(\%seen, 'wal_level = minimal', \@ids, [ call('m') ]);

# An unlogged sequence starts anew after a crash, a temporary one ends with its session: the clock has moved on.
$node->safe_psql('postgres', 'CREATE UNLOGGED SEQUENCE u');
my @unlogged = split /\n/, $node->safe_psql('postgres', "SELECT snowflake_nextval('u') FROM generate_series(1, 5000)");
crash($node);
is($node->safe_psql('postgres', 'SELECT is_called FROM u'), 'f', 'the unlogged sequence was reset');
push @unlogged, split /\n/, $node->safe_psql('postgres', "SELECT snowflake_nextval('u') FROM generate_series(1, 5000)");
ids_are_new(\%seen, 'unlogged', \@unlogged);
my $temporary = q{CREATE TEMP SEQUENCE t; SELECT snowflake_nextval('t') FROM generate_series(1, 5000)};
my %temporary_seen;
ids_are_new(\%temporary_seen, 'temporary', map { [ split /\n/, $node->safe_psql('postgres', $temporary) ] } 1 .. 2);

# PostgreSQL's nextval cannot make an unlogged sequence wait for ever.
$node->safe_psql('postgres', "SELECT count(nextval('u')) FROM generate_series(1, 1000)");
cmp_ok(call('u'), '>', $unlogged[-1], 'after nextval the unlogged sequence goes on');

# A damaged page is refused, not written to: its magic number, where its tuple is, how long that tuple's header is.
my %damage = (magic => [ 8192 - 8, 8 ], item => [ 24, 4 ], header => [ 8192 - 8 - 48 + 22, 1 ]);
my %paths;
$paths{$_} = $node->safe_psql('postgres', "CREATE SEQUENCE damaged_$_; SELECT pg_relation_filepath('damaged_$_')")
  foreach keys %damage;
$node->stop;
foreach my $kind (keys %damage)
{
	my ($offset, $bytes) = @{ $damage{$kind} };
	open my $file, '+<', $node->data_dir . "/$paths{$kind}" or die $!;
	binmode $file;
	seek $file, $offset, 0;
	print $file "\xff" x $bytes;
	close $file;
}
$node->start;
foreach my $kind (sort keys %damage)
{
	my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT snowflake_nextval('damaged_$kind')");
	like($err, qr/XX001: the page of sequence "damaged_$kind" is damaged/, "a damaged page is refused: $kind");
}
cmp_ok(call('s'), '>', 0, 'and the server goes on');

stop_clean($node);
done_testing();
