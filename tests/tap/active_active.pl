# Three servers that replicate one table to each other, all inserting at once: no conflict, and all end equal.
use strict;
use warnings;

use Snowflake;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @names = qw(a b c);
my %nodes = map { $_ => new_cluster($_, 'wal_level = logical', "snowflake.node = " . (ord($_) - ord('a') + 1), 'log_statement = none') }
  @names;
plan skip_all => 'subscriptions have an origin from PostgreSQL 16 on' if $nodes{a}->pg_version < 16;

foreach my $node (values %nodes)
{
	$node->safe_psql('postgres', q{
		CREATE TABLE items (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), made_by int DEFAULT snowflake_current_node());
		CREATE PUBLICATION everything FOR TABLE items;
	});
}
foreach my $to (@names)
{
	foreach my $from (grep { $_ ne $to } @names)
	{
		(my $connstr = $nodes{$from}->connstr('postgres')) =~ s{'}{''}g;
		$nodes{$to}->safe_psql('postgres', qq{
			CREATE SUBSCRIPTION ${to}_from_$from CONNECTION '$connstr application_name=${to}_from_$from' PUBLICATION everything
				WITH (origin = none, copy_data = false)});
	}
}

# Single rows and many at once, on each server.
sub insert
{
	my ($times) = @_;
	return map { start_clients($nodes{$_}, ("INSERT INTO items SELECT FROM generate_series(1, 20) RETURNING id;\n" x $times,
				"INSERT INTO items DEFAULT VALUES RETURNING id;\n" x (5 * $times))) } @names;
}
my @clients = insert(rounds(100, 3000));
# One of them stops at once in the middle, and comes back.
$nodes{b}->poll_query_until('postgres', 'SELECT count(DISTINCT made_by) = 3 FROM items') or die 'the servers do not replicate';
$nodes{b}->stop('immediate');
$nodes{b}->start;
my @lists = (finish_clients(@clients), finish_clients(insert(50)));

my %seen;
my $ids = ids_are_new(\%seen, 'three servers', @lists);
cmp_ok($ids, '>', 5000, 'clients were at it');
foreach my $from (@names)
{
	$nodes{$from}->wait_for_catchup("${_}_from_$from") foreach grep { $_ ne $from } @names;
}
foreach my $name (@names)
{
	# A client that lost its connection may not have seen its last rows.
	my %there = map { $_ => 1 } split /\n/, $nodes{$name}->safe_psql('postgres', 'SELECT id FROM items');
	is(scalar(grep { !$there{$_} } keys %seen), 0, "$name has every row that a client saw");
	is($nodes{$name}->safe_psql('postgres', 'SELECT count(*) FROM items WHERE snowflake_node(id) <> made_by'),
		0, "$name: each ID tells the server that made it");
}
my @tables = map { $nodes{$_}->safe_psql('postgres', q{SELECT count(*), md5(string_agg(items::text, ',' ORDER BY id)) FROM items}) } @names;
is($tables[1], $tables[0], 'a and b end equal');
is($tables[2], $tables[0], 'a and c end equal');
foreach my $name (@names)
{
	# From PostgreSQL 18 on they are counted.
	is($nodes{$name}->safe_psql('postgres', q{
			SELECT coalesce(sum(value::int), 0) FROM pg_stat_subscription_stats s, jsonb_each_text(to_jsonb(s))
			WHERE key LIKE 'confl\_%'}), 0, "$name: no conflict is counted");
	my @conflicts = grep { /conflict|duplicate key/ } split /\n/, slurp_file($nodes{$name}->logfile);
	is(join("\n", @conflicts), '', "$name: no conflict is logged");
}
stop_clean($nodes{$_}) foreach @names;
done_testing();
