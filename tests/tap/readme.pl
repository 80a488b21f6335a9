# Every SQL example in README.md works, and gives the answer written behind it.
use strict;
use warnings;

use Snowflake;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('readme');
$node->init;
$node->start;

my @blocks = slurp_file('README.md') =~ /^```sql\n(.*?)^```/msg;
cmp_ok(scalar(@blocks), '>', 10, 'README has examples');
my $answers = 0;
foreach my $block (@blocks)
{
	my ($ret, $out, $err) = $node->psql('postgres', $block);
	my ($title) = $block =~ /^(.*)/;
	is("$ret $err", '0 ', "it runs: $title ...");
	while ($block =~ /^(SELECT .*;)  -- (.*)$/mg)
	{
		is($node->safe_psql('postgres', $1), $2, $1);
		$answers++;
	}
}
cmp_ok($answers, '>', 10, 'README tells answers');

stop_clean($node);
done_testing();
