# At a low rate, too, IDs spread over id % n: the counter runs on from one millisecond to the next, and no reserve is
# left unused that would make it jump.
use strict;
use warnings;

use Snowflake;
use Test::More;

my $node = new_cluster('shards');

# Each residue has its share, give or take half of it. A counter that starts anew each millisecond gives all to one.
sub is_even
{
	my ($name, $shards, @ids) = @_;
	my @counts = (0) x $shards;
	$counts[ $_ % $shards ]++ foreach @ids;
	my $share = @ids / $shards;
	is(scalar(grep { $_ < $share / 2 || $_ > $share * 1.5 } @counts), 0,
		"$name: " . @ids . " IDs are even over $shards shards (@counts)");
	return;
}

foreach my $cache (1, 64)
{
	$node->safe_psql('postgres', "CREATE SEQUENCE $_$cache CACHE $cache") foreach qw(session sessions transaction each);
	my $session = sub { "SELECT snowflake_nextval('$_[0]$cache');\nSELECT pg_sleep(0.002);\n" };

	my ($ids) = finish_clients(start_clients($node, $session->('session') x 640));
	is_even("a session, CACHE $cache", $_, @$ids) foreach 16, 64;

	my @lists = finish_clients(start_clients($node, ($session->('sessions') x 320) x 4));
	is_even("sessions, CACHE $cache", $_, map { @$_ } @lists) foreach 16, 64;

	($ids) = finish_clients(start_clients($node, "BEGIN;\n" . $session->('transaction') x 640 . "COMMIT;\n"));
	is_even("a transaction, CACHE $cache", $_, @$ids) foreach 16, 64;

	is_even("a session for each, CACHE $cache", 16,
		map { $node->safe_psql('postgres', "SELECT snowflake_nextval('each$cache')") } 1 .. 96);
}

stop_clean($node);
done_testing();
