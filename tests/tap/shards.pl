# At a low rate, too, IDs spread over id % n: the counter runs on from one millisecond to the next, and no reserve is
# left unused that would make it jump.
use strict;
use warnings;

use Snowflake;
use Test::More;

my $node = new_cluster('shards');

# Each residue has its share, give or take half of it. A counter that starts anew each millisecond gives all to one.
sub are_even
{
	my ($name, $calls, @lists) = @_;
	my @ids = map { @$_ } @lists;
	is(scalar(@ids), $calls, "$name: every call got an ID");
	foreach my $shards (16, 64)
	{
		my @counts = (0) x $shards;
		$counts[ $_ % $shards ]++ foreach @ids;
		my $share = $calls / $shards;
		is(scalar(grep { $_ < $share / 2 || $_ > $share * 1.5 } @counts), 0, "$name: even over $shards shards (@counts)");
	}
	return;
}

foreach my $cache (1, 64)
{
	$node->safe_psql('postgres', "CREATE SEQUENCE $_$cache CACHE $cache") foreach qw(session sessions transaction each);
	# The sleep is what makes the rate low.
	my $calls = sub { "SELECT snowflake_nextval('$_[0]$cache');\nSELECT pg_sleep(0.002);\n" x 640 };

	are_even("a session, CACHE $cache", 640, finish_clients(start_clients($node, $calls->('session'))));
	are_even("sessions, CACHE $cache", 2560, finish_clients(start_clients($node, ($calls->('sessions')) x 4)));
	are_even("a transaction, CACHE $cache", 640,
		finish_clients(start_clients($node, "BEGIN;\n" . $calls->('transaction') . "COMMIT;\n")));
	are_even("a session for each, CACHE $cache", 640,
		finish_clients(start_clients($node, "SELECT snowflake_nextval('each$cache');\n\\connect\n" x 640)));
}

stop_clean($node);
done_testing();
