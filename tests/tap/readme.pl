# Every SQL example in the documents works, and gives the answer written behind it.
use strict;
use warnings;

use Snowflake;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('readme');
$node->init;
$node->start;

my ($examples, $answers) = (0, 0);
foreach my $document ('README.md', glob 'docs/*.md')
{
	# README creates the extension itself.
	my ($db) = $document =~ /(\w+)\.md/;
	$node->safe_psql('postgres', qq{CREATE DATABASE "$db"});
	$node->safe_psql($db, 'CREATE EXTENSION snowflake') if $db ne 'README';
	my @blocks = slurp_file($document) =~ /^```sql\n(.*?)^```/msg;
	foreach my $block (@blocks)
	{
		my ($ret, $out, $err) = $node->psql($db, $block);
		my ($title) = $block =~ /^(.*)/;
		is("$ret $err", '0 ', "$document: it runs: $title ...");
		while ($block =~ /^(SELECT .*;)  -- (.*)$/mg)
		{
			is($node->safe_psql($db, $1), $2, "$document: $1");
			$answers++;
		}
		$examples++;
	}
}
cmp_ok($examples, '>', 15, 'there are examples');
cmp_ok($answers, '>', 15, 'with answers');

stop_clean($node);
done_testing();
