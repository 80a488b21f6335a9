# What the cluster tests share: a cluster with the extension, clients that run at once, and the check of all IDs.
package Snowflake;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes 'usleep';

our @EXPORT = qw(new_cluster start_clients finish_clients ids_are_new ids_are_later start_again crash stop_clean rounds
  has_clock new_cluster_with_clock start_with_clock set_clock stop_clients seed);

# How many rounds a test runs: the first number in make test, the second in make test-long.
sub rounds
{
	my ($short, $long) = @_;
	return ($ENV{PG_TEST_EXTRA} // '') =~ /\blong\b/ ? $long : $short;
}

# A running cluster with the extension in the database "postgres".
sub new_cluster { return set_up(sub { $_[0]->start }, @_); }

sub set_up
{
	my ($start, $name, @conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => 1);
	$node->append_conf('postgresql.conf', "$_\n") foreach @conf;
	$start->($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	return $node;
}

my $clients = 0;

# Starts one psql for each SQL text; each prints IDs, one a line. Files, so that they run on while the test does not look.
sub start_clients
{
	my ($node, @sql) = @_;
	return map {
		my $path = "$PostgreSQL::Test::Utils::tmp_check/client_" . ++$clients;
		PostgreSQL::Test::Utils::append_to_file("$path.sql", $_);
		{   path => $path,
			run => IPC::Run::start(
				[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', "$path.sql" ],
				'>', "$path.out", '2>', "$path.err")
		};
	} @sql;
}

# Waits for them: the IDs of each, as a list of lists. A client whose server went away keeps what it got.
sub finish_clients
{
	return map {
		my $path = $_->{path};
		$_->{run}->finish;
		my $ids = PostgreSQL::Test::Utils::slurp_file("$path.out");
		unlink map { "$path.$_" } qw(sql out err);
		# The last line may be cut.
		[ grep { /^\d{18,19}$/ } split /\n/, $ids ];
	} @_;
}

# Ends clients whose work would go on for long, and gives their IDs.
sub stop_clients
{
	my ($node, @clients) = @_;
	my $ended = $node->safe_psql('postgres', q{
		SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
		WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()});
	is($ended, scalar(@clients), 'all clients were at it to the end');
	return finish_clients(@clients);
}

# Tests that no ID came before, in this list or in %$seen, and that each client's increase.
sub ids_are_new
{
	my ($seen, $name, @lists) = @_;
	my ($ids, $repeats, $backwards) = (0, 0, 0);
	foreach my $list (@lists)
	{
		my $last = 0;
		foreach my $id (@$list)
		{
			$ids++;
			$repeats++ if $seen->{$id}++;
			$backwards++ if $id <= $last;
			$last = $id;
		}
	}
	is("$repeats repeats, $backwards backwards", '0 repeats, 0 backwards', "$name: $ids IDs are new and increase");
	return $ids;
}

# The same, and that each is greater than all that came before of this sequence, whose largest is kept in %$largest:
# after a crash, a restart or a promotion that is so whatever the CACHE, as no session of before goes on.
sub ids_are_later
{
	my ($largest, $seq, $name, @lists) = @_;
	my @ids = sort { $a <=> $b } map { @$_ } @lists;
	my $count = ids_are_new({}, $name, @lists);
	return 0 unless @ids;
	cmp_ok($ids[0], '>', $largest->{$seq} // 0, "$name: greater than all before");
	$largest->{$seq} = $ids[-1];
	return $count;
}

# A seed that is told, and can be given to run the same again.
sub seed
{
	my $seed = $ENV{SNOWFLAKE_SEED} || int(rand(1_000_000_000)) + 1;
	note "SNOWFLAKE_SEED=$seed";
	return $seed;
}

# Servers with a clock of their own, by libfaketime: it is what the machine shows plus what a file says.
my ($faketime) = glob '/usr/lib/*/faketime/libfaketime.so.1';
sub has_clock { return $faketime; }

sub new_cluster_with_clock { return set_up(sub { set_clock($_[0], 0); start_with_clock($_[0]); }, @_); }

sub clock_file { return $_[0]->basedir . '/clock'; }

sub start_with_clock
{
	my ($node) = @_;
	# A wait goes by the monotonic clock, which nobody sets.
	local @ENV{qw(LD_PRELOAD FAKETIME_TIMESTAMP_FILE FAKETIME_NO_CACHE FAKETIME_DONT_FAKE_MONOTONIC DONT_FAKE_MONOTONIC)} =
	  ($faketime, clock_file($node), 1, 1, 1);
	start_again($node);
	return;
}

# Sets the clock so many seconds off, at once for all of the server's processes.
sub set_clock
{
	my ($node, $seconds) = @_;
	my $file = clock_file($node);
	open my $new, '>', "$file.new" or die $!;
	printf $new "%+.6f\n", $seconds;
	close $new;
	rename "$file.new", $file or die $!;
	return;
}

# Starts a server that did not shut down in order.
sub start_again
{
	my ($node) = @_;
	# The old server's processes may hold on to its shared memory for a moment.
	for (1 .. 100)
	{
		return if $node->start(fail_ok => 1);
		usleep(100_000);
		$node->stop('fast', fail_ok => 1);
	}
	die 'no start after the crash';
}

# Kills the postmaster and starts the server again.
sub crash
{
	my ($node) = @_;
	$node->kill9;
	start_again($node);
	return;
}

# Stops the server and tests that its log tells of no panic, failed assertion, leaked pin or lock.
sub stop_clean
{
	my ($node) = @_;
	$node->stop;
	my @bad = grep { /PANIC|TRAP|leak|still referenced|terminated by signal (?!9)/ }
	  split /\n/, PostgreSQL::Test::Utils::slurp_file($node->logfile);
	is(join("\n", @bad), '', 'the log of ' . $node->name . ' is clean');
	return;
}

1;
