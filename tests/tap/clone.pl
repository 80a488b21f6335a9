# Servers copied while clients are at it, as a backup and as a dump: under another node number the copy makes IDs beside
# the original, under the same one it takes its place, and neither ever repeats one.
use strict;
use warnings;

use Snowflake;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $original = new_cluster('original', 'max_connections = 30', 'log_statement = none');
$original->safe_psql('postgres', q{
	CREATE SEQUENCE cached CACHE 64;
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
});

sub writers
{
	my ($times) = @_;
	return ("SELECT snowflake_nextval('cached') FROM generate_series(1, 20);\n" x $times,
		"INSERT INTO orders SELECT FROM generate_series(1, 20) RETURNING id;\n" x $times);
}

# IDs have their server's node number, and are later than all that servers of this number made of the sequence before.
my %largest;
sub are_new
{
	my ($name, $number, @lists) = @_;
	my @seqs = qw(cached orders);
	foreach my $n (0, 1)
	{
		my ($seq, $ids) = ($seqs[$n], $lists[$n]);
		cmp_ok(ids_are_later(\%largest, "$seq $number", "$name, $seq", $ids), '>', 0, "$name, $seq: the client was at it");
		is(scalar(grep { ($_ >> 12 & 1023) != $number } @$ids), 0, "$name, $seq: IDs have the server's node number");
	}
	return @lists;
}

# Rows that were committed are there, but for those of the statement that was cut off.
sub has_rows
{
	my ($node, $name, @ids) = @_;
	my %there = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', 'SELECT id FROM orders');
	is(scalar(grep { !$there{$_} } @ids), 0, $name);
	return;
}

my @clients;
my $writers = q{FROM pg_stat_activity WHERE query LIKE '%generate_series(1, 20)%' AND pid <> pg_backend_pid()};
sub start_writers
{
	my $last = $original->safe_psql('postgres', 'SELECT coalesce(max(id), 0) FROM orders');
	@clients = start_clients($original, writers(100_000));
	$original->poll_query_until('postgres', "SELECT (SELECT max(id) > $last FROM orders) AND (SELECT count(*) = 2 $writers)")
	  or die 'the clients do not start';
	return;
}

# Both copies are made, and make IDs of their own, while the original goes on.
start_writers();
$original->backup('under_load');
my $dump = "$PostgreSQL::Test::Utils::tmp_check/dump.sql";
command_ok([ 'pg_dump', '-f', $dump, '-d', $original->connstr('postgres') ], 'dumped under load');

my $backup = PostgreSQL::Test::Cluster->new('backup');
$backup->init_from_backup($original, 'under_load');
$backup->append_conf('postgresql.conf', 'snowflake.node = 2');
$backup->start;

my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init;
$restored->append_conf('postgresql.conf', 'snowflake.node = 3');
$restored->start;
command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $restored->connstr('postgres'), '-f', $dump ],
	'the dump is restored into another server');

my @beside = map { start_clients($_, writers(rounds(300, 10_000))) } $backup, $restored;
my @lists = finish_clients(@beside);
is($original->safe_psql('postgres', "SELECT count(pg_terminate_backend(pid)) $writers"), 2, 'the original was at it all the while');
my (undef, $orders) = are_new('the original', 1, finish_clients(@clients));
are_new('a clone with a number of its own', 2, @lists[ 0, 1 ]);
are_new('a dump restored under a number of its own', 3, @lists[ 2, 3 ]);
has_rows($original, 'the original has its rows', @$orders);
stop_clean($backup);

# The original ends, and three take its number, one after the other. What the first knows is all that the original did:
# it was connected up to the end.
my $caught_up = PostgreSQL::Test::Cluster->new('caught_up');
$caught_up->init_from_backup($original, 'under_load', has_streaming => 1);
$caught_up->start;
$original->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'})
  or die 'it does not stream';
start_writers();
$original->stop('fast');
my (undef, $last_orders) = are_new('the original, to its end', 1, finish_clients(@clients));
$caught_up->promote;
has_rows($caught_up, 'the clone has the rows', @$orders, @$last_orders);
are_new('a clone in its place', 1, finish_clients(start_clients($caught_up, writers(300))));
stop_clean($caught_up);

# The second knows only what was before the end of the backup, the third what was before the dump: the clock has moved on.
my $stale = PostgreSQL::Test::Cluster->new('stale');
$stale->init_from_backup($original, 'under_load');
$stale->start;
are_new('a backup in its place', 1, finish_clients(start_clients($stale, writers(300))));
stop_clean($stale);

$restored->append_conf('postgresql.conf', 'snowflake.node = 1');
$restored->reload;
$restored->poll_query_until('postgres', 'SELECT snowflake_current_node() = 1') or die 'no reload';
are_new('a restored dump in its place', 1, finish_clients(start_clients($restored, writers(300))));
stop_clean($restored);
done_testing();
