# Three servers that replicate one table to each other, all inserting at once: no conflict, and all end equal.
use strict;
use warnings;

use Snowflake;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'subscriptions have an origin from PostgreSQL 16 on'
  if PostgreSQL::Test::Cluster->new('version')->pg_version < 16;

my @names = qw(a b c);
my %nodes = map { $_ => new_cluster($_, 'wal_level = logical', 'log_statement = none', 'snowflake.node = ' . (ord($_) - ord('a') + 1)) }
  @names;

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

# Single rows, and many at once.
sub inserts
{
	my ($times) = @_;
	return ("INSERT INTO items SELECT FROM generate_series(1, 20) RETURNING id;\n" x $times,
		"INSERT INTO items DEFAULT VALUES RETURNING id;\n" x (5 * $times));
}

my %clients = map { $_ => [ start_clients($nodes{$_}, inserts(100_000)) ] } @names;
my $three = 'SELECT count(DISTINCT made_by) = 3 FROM items';
$nodes{$_}->poll_query_until('postgres', $three) or die "nothing is replicated to $_" foreach @names;

# One of them stops at once in the middle, and comes back, while the others go on.
$nodes{b}->stop('immediate');
my @lists = finish_clients(@{ delete $clients{b} });
start_again($nodes{b});
push @lists, my @back = finish_clients(start_clients($nodes{b}, inserts(rounds(100, 3000))));
my ($last) = sort { $b <=> $a } map { @$_ } @back;
$nodes{$_}->poll_query_until('postgres', "SELECT count(*) = 1 FROM items WHERE id = $last") or die "b is not back at $_" foreach qw(a c);
foreach my $name (qw(a c))
{
	is($nodes{$name}->safe_psql('postgres', q{
			SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND query LIKE 'INSERT INTO items%'}),
		2, "$name: clients were at it all the while");
	push @lists, finish_clients(@{ delete $clients{$name} });
}

my %seen;
ids_are_new(\%seen, 'three servers', @lists);
is(scalar(grep { !@$_ } @lists), 0, 'every client got IDs');

foreach my $from (@names)
{
	$nodes{$from}->wait_for_catchup("${_}_from_$from") foreach grep { $_ ne $from } @names;
}
my @tables = map { $nodes{$_}->safe_psql('postgres', 'SELECT count(*), md5(string_agg(items::text, $$,$$ ORDER BY id)) FROM items') } @names;
is($tables[1], $tables[0], 'a and b end equal');
is($tables[2], $tables[0], 'a and c end equal');

# What clients saw and what is there are the same, but for the last statement of each that was cut off: 20 rows and one.
my %there = map { $_ => 1 } split /\n/, $nodes{a}->safe_psql('postgres', 'SELECT id FROM items');
is(scalar(grep { !$there{$_} } keys %seen), 0, 'every row that a client saw is there');
cmp_ok(scalar(grep { !$seen{$_} } keys %there), '<=', 3 * 21, 'and no other');
is($nodes{a}->safe_psql('postgres', 'SELECT count(*) FROM items WHERE snowflake_node(id) <> made_by'),
	0, 'each ID tells the server that made it');

foreach my $name (@names)
{
	# From PostgreSQL 18 on they are counted. So is an error where the other server went away: only b did.
	is($nodes{$name}->safe_psql('postgres', q{
			SELECT coalesce(sum(value::int), 0) FROM pg_stat_subscription_stats s, jsonb_each_text(to_jsonb(s))
			WHERE key LIKE 'confl\_%' OR (key = 'apply_error_count' AND subname IN ('a_from_c', 'c_from_a'))}),
		0, "$name: no conflict is counted");
	my @conflicts = grep { /conflict|duplicate key/ } split /\n/, slurp_file($nodes{$name}->logfile);
	is(join("\n", @conflicts), '', "$name: no conflict is logged");
}
stop_clean($nodes{$_}) foreach @names;
done_testing();
