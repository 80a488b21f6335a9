# Promises 1 and 2 with many clients: every ID is new, each client's increase, whoever resets the sequence.
use strict;
use warnings;

use Snowflake;
use Test::More;

my $node = new_cluster('clients');
my %seen;

# Statements of many sizes, each its own transaction.
sub calls
{
	my ($seq, $ids, $size) = @_;
	return "SELECT snowflake_nextval('$seq') FROM generate_series(1, $size);\n" x ($ids / $size);
}

$node->safe_psql('postgres', 'CREATE SEQUENCE s');
my @sizes = (1000, 1000, 500, 100, 50, 25, 10, 5);
my @lists = finish_clients(start_clients($node, map { calls('s', 50_000, $_) } @sizes));
is(ids_are_new(\%seen, 'eight clients', @lists), 400_000, 'every client got all its IDs');

# An immediate stop in the middle, and a restart.
foreach my $round (1 .. 3)
{
	my @clients = start_clients($node, map { calls('s', 1_000_000, 20) } 1 .. 8);
	# Not before they are at it: the sequence moves on.
	my $last = $node->safe_psql('postgres', 'SELECT last_value FROM s');
	$node->poll_query_until('postgres', "SELECT last_value > $last + (200::bigint << 22) FROM s");
	$node->stop('immediate');
	my @before = finish_clients(@clients);
	$node->start;
	cmp_ok(ids_are_new(\%seen, "stopped at once, round $round", @before), '>', 10_000, 'clients were at it');
	my @after = finish_clients(start_clients($node, map { calls('s', 5_000, 100) } 1 .. 8));
	is(ids_are_new(\%seen, "restarted, round $round", @after), 40_000, 'all clients got IDs');
}

# Four sessions that reset the sequence in a loop, each in its own way, and call in between.
$node->safe_psql('postgres', 'CREATE SEQUENCE r; CREATE TABLE o (id bigint); ALTER SEQUENCE r OWNED BY o.id');
my $call = "SELECT snowflake_nextval('r') FROM generate_series(1, 3);\n";
my @resets = (
	"SELECT setval('r', 1, false) / 1000;",
	"ALTER SEQUENCE r RESTART;",
	"TRUNCATE o RESTART IDENTITY;",
	"SELECT setval('r', last_value) / 1000000000000 FROM r; ALTER SEQUENCE r INCREMENT 1;");
@lists = finish_clients(start_clients($node, map { "$_\n$call" x 300 } @resets));
# An ID may be less than the one before: two sessions, and the sequence set back between them. None is a repeat.
my %reset_seen;
$reset_seen{$_}++ foreach map { @$_ } @lists;
is(scalar(grep { $_ > 1 } values %reset_seen), 0, 'no repeat under resets');
is(scalar(keys %reset_seen), 4 * 300 * 3, 'every call got an ID');

# The largest INCREMENT leaves one ID a millisecond; 50 leaves 81. Blocks never overlap.
foreach my $increment (50, 2048)
{
	$node->safe_psql('postgres', "CREATE SEQUENCE i$increment INCREMENT $increment");
	@lists = finish_clients(start_clients($node, map { calls("i$increment", 500, 50) } 1 .. 8));
	my @ids = sort { $a <=> $b } map { @$_ } @lists;
	is(scalar(@ids), 4_000, "INCREMENT $increment: all clients got IDs");
	is(scalar(grep { $ids[$_] - $ids[ $_ - 1 ] < $increment } 1 .. $#ids), 0, "INCREMENT $increment: no overlap");
}

# PostgreSQL's nextval in a loop keeps nobody from an ID, logged or not.
foreach my $kind ('', 'UNLOGGED')
{
	next if $kind && $node->pg_version < 15;
	$node->safe_psql('postgres', "CREATE $kind SEQUENCE busy$kind");
	my @loop = start_clients($node, "SELECT count(nextval('busy$kind')) FROM generate_series(1, 100000);\n" x 10_000);
	$node->poll_query_until('postgres', "SELECT is_called FROM busy$kind");
	my $at_the_clock = $node->safe_psql('postgres', "SET statement_timeout = '10s';\n"
		. "SELECT snowflake_timestamp(snowflake_nextval('busy$kind')) <= clock_timestamp() + interval '1 ms';\n" x 200);
	is($at_the_clock =~ tr/t//, 200, "nextval in a loop, $kind sequence: all calls got an ID of their time");
	is($node->safe_psql('postgres',
			"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'SELECT count(nextval%'"),
		1, 'while it ran');
	finish_clients(@loop);
}

# Between two calls of one transaction the sequence's page may have to make room for others.
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_buffercache;
	CREATE SEQUENCE crowded;
	CREATE TABLE crowd (filler text);
	CREATE TABLE seen (id bigint PRIMARY KEY DEFAULT snowflake_nextval('crowded'), buffer int);
	CREATE FUNCTION buffer_of_crowded() RETURNS int LANGUAGE sql AS $$
		SELECT bufferid FROM pg_buffercache WHERE relfilenode = pg_relation_filenode('crowded') $$;
	DO $$ BEGIN
		FOR i IN 1..300 LOOP
			INSERT INTO seen (buffer) VALUES (buffer_of_crowded());
			INSERT INTO crowd SELECT repeat('x', 2000) FROM generate_series(1, 400);
		END LOOP;
	END $$});
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT buffer) > 1 FROM seen'), '300|t',
	'a call finds the page in another buffer than the call before');

# Who waits for the clock is seen to wait.
my @waiting = start_clients($node, "SELECT count(snowflake_nextval('i2048')) FROM generate_series(1, 20000)");
ok($node->poll_query_until('postgres',
		q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND query LIKE 'SELECT count(snow%'}),
	'a waiting call shows as one that waits');
stop_clients($node, @waiting);

# A wait for the clock is cancelled at once: these calls would take 20 s at one ID a millisecond.
my ($ret, $out, $err) = $node->psql('postgres',
	"SET statement_timeout = 200; SELECT count(snowflake_nextval('i2048')) FROM generate_series(1, 20000)");
like($err, qr/canceling statement due to statement timeout/, 'a waiting call is cancelled');
cmp_ok($node->safe_psql('postgres', "SELECT snowflake_nextval('i2048')"), '>', 0, 'the next call works');

stop_clean($node);
done_testing();
