# The server's settings.
use strict;
use warnings;

use Snowflake;
use Test::More;

my $node = new_cluster('primary');
$node->safe_psql('postgres', 'CREATE SEQUENCE s; CREATE ROLE plain LOGIN');

# A reload reaches a running session at its next statement.
my ($in, $out) = ('', '');
my $session = IPC::Run::start(
	[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', '-' ], '<', \$in, '>', \$out);

sub node_of_next
{
	$out = '';
	$in .= "SELECT 'node ' || snowflake_node(snowflake_nextval('s')) || ' ' || snowflake_current_node();\n";
	$session->pump until $out =~ /^node (\d+ \d+)\n/;
	return $1;
}
is(node_of_next(), '1 1', 'the default node');
$node->append_conf('postgresql.conf', 'snowflake.node = 42');
$node->reload;
$node->poll_query_until('postgres', 'SELECT snowflake_current_node() = 42') or die 'no reload';
# The postmaster tells the session by a signal; statements go on meanwhile.
my $answer = '';
for (1 .. 1000) { $answer = node_of_next(); last if $answer eq '42 42'; }
is($answer, '42 42', 'a reload reaches a running session');
$in .= "\\q\n";
$session->finish;

# What the server takes before the library is loaded, and what is left of it then.
my ($ret, $stdout, $stderr) = $node->psql('postgres',
	q{SET snowflake.node = 7; SELECT snowflake_current_node();}, extra_params => [ '-U', 'plain' ]);
like($stderr, qr/permission denied to set parameter "snowflake.node"/, 'set before the library is loaded: refused when it is');
is($stdout, 42, 'and the node stays');
SKIP:
{
	skip 'the prefix is reserved from PostgreSQL 15 on', 2 if $node->pg_version < 15;
	($ret, $stdout, $stderr) = $node->psql('postgres', q{SET snowflake.nod = 7; SELECT snowflake_current_node();});
	like($stderr, qr/invalid configuration parameter name "snowflake.nod"/, 'a misspelt one: warned of when it is loaded');
	$node->append_conf('postgresql.conf', "session_preload_libraries = 'snowflake'");
	$node->reload;
	$node->poll_query_until('postgres', q{SELECT current_setting('snowflake.max_clock_skew', true) = '2h'});
	($ret, $stdout, $stderr) = $node->psql('postgres', q{SET snowflake.nod = 7});
	like($stderr, qr/invalid configuration parameter name "snowflake.nod"/, 'refused with session_preload_libraries');
}
$node->safe_psql('postgres', 'ALTER ROLE plain SET snowflake.node = 9');
is($node->safe_psql('postgres', 'SELECT snowflake_current_node()', extra_params => [ '-U', 'plain' ]),
	9, 'a node for a role, set by a superuser');

stop_clean($node);
done_testing();
