# A server that is copied while clients are at it: under another node number it makes IDs beside the original, under the
# same one it takes its place. And a dump that is restored into another server.
use strict;
use warnings;

use Snowflake;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $original = new_cluster('original', 'max_connections = 30');
$original->safe_psql('postgres', q{
	CREATE SEQUENCE cached CACHE 64;
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
});
my %seen;

sub writers
{
	my ($times) = @_;
	return ("SELECT snowflake_nextval('cached') FROM generate_series(1, 20);\n" x $times,
		"INSERT INTO orders SELECT FROM generate_series(1, 20) RETURNING id;\n" x $times);
}

# Two sequences on one node may give equal IDs: each is kept apart.
sub are_new
{
	my ($name, $cached, $orders) = @_;
	my $ids = ids_are_new(\%{ $seen{cached} }, "$name, a sequence", $cached) + ids_are_new(\%{ $seen{orders} }, "$name, a table", $orders);
	cmp_ok($ids, '>', 0, "$name: clients were at it");
	return map { @$_ } $cached, $orders;
}

# Another node's, while the original goes on.
my @clients = start_clients($original, writers(100_000));
$original->poll_query_until('postgres', 'SELECT count(*) > 100 FROM orders') or die 'the clients do not start';
$original->backup('under_load');
my $beside = PostgreSQL::Test::Cluster->new('beside');
$beside->init_from_backup($original, 'under_load');
$beside->append_conf('postgresql.conf', 'snowflake.node = 2');
$beside->start;
my @beside = are_new('a clone with a number of its own', finish_clients(start_clients($beside, writers(300))));
is(scalar(grep { ($_ >> 12 & 1023) != 2 } @beside), 0, 'its IDs have its number');
cmp_ok($original->safe_psql('postgres',
		q{SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE '%generate_series(1, 20)%' AND pid <> pg_backend_pid()}),
	'>', 0, 'the original was at it all the time');
my @original = are_new('the original', finish_clients(@clients));
is(scalar(grep { ($_ >> 12 & 1023) != 1 } @original), 0, 'its IDs have its number');

# A dump, restored into another server while clients write to this one, which then ends.
my $restored = PostgreSQL::Test::Cluster->new('restored');
$restored->init;
$restored->start;
@clients = start_clients($original, writers(300));
my $dump = "$PostgreSQL::Test::Utils::tmp_check/dump.sql";
command_ok([ 'pg_dump', '-f', $dump, '-d', $original->connstr('postgres') ], 'dumped under load');
are_new('dumped under load', finish_clients(@clients));

# The same number, with all that the original made up to its end.
my $in_place = PostgreSQL::Test::Cluster->new('in_place');
$in_place->init_from_backup($original, 'under_load', has_streaming => 1);
$in_place->start;
@clients = start_clients($original, writers(100_000));
$original->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'}) or die 'it does not stream';
$original->stop('fast');
my @last = are_new('the original, to its end', finish_clients(@clients));
$in_place->promote;
are_new('a clone in its place', finish_clients(start_clients($in_place, writers(300))));
stop_clean($in_place);

command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $restored->connstr('postgres'), '-f', $dump ], 'restored into another server');
# What came after the dump is in neither: the clock has moved on since.
$restored->append_conf('postgresql.conf', 'snowflake.node = 1');
$restored->reload;
my %after_dump = map { $_ => 1 } @last;
my @restored = map { @$_ } finish_clients(start_clients($restored, writers(300)));
is(scalar(grep { $after_dump{$_} } @restored), 0, 'the restored server repeats none of the IDs that it does not know');
cmp_ok(scalar(@restored), '>', 0, 'clients were at it there');

stop_clean($beside);
done_testing();
