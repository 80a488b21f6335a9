# Dump and restore, and a copy by template: no error, no repeat.
use strict;
use warnings;

use Snowflake;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_cluster('dump');
my %seen;

$node->safe_psql('postgres', q{
	CREATE ROLE owner LOGIN CREATEDB;
	CREATE ROLE other LOGIN;
	CREATE DATABASE owned OWNER owner;
});

my $setup = q{
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), item text);
	CREATE SEQUENCE s;
	CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s'), node int GENERATED ALWAYS AS (snowflake_node(id)) STORED);
};
my $insert = q{
	INSERT INTO orders (item) SELECT 'x' FROM generate_series(1, 1000) RETURNING id;
	INSERT INTO events DEFAULT VALUES RETURNING id;
};

sub run_as
{
	my ($role, $db, $sql) = @_;
	return $node->safe_psql($db, $sql, extra_params => [ '-U', $role ]);
}

# A plain database owner may create it: it is trusted, and the sequence is the owner's.
run_as('owner', 'owned', "CREATE EXTENSION snowflake; $setup");
is(run_as('owner', 'owned', q{SELECT relowner::regrole FROM pg_class WHERE relname = 'snowflake_id_seq'}),
	'owner', 'snowflake_id_seq belongs to who created the extension');
like(run_as('other', 'owned', 'SELECT snowflake_nextval()'), qr/^\d+$/, 'and every role may use it');

foreach my $case ([ 'postgres', 'superuser' ], [ 'owned', 'owner' ])
{
	my ($db, $who) = @$case;
	my $role = $who eq 'owner' ? 'owner' : $node->safe_psql('postgres', 'SELECT current_user');
	$node->safe_psql('postgres', $setup) if $who eq 'superuser';
	my @before = split /\n/, run_as($role, $db, $insert);
	my $dump = "$PostgreSQL::Test::Utils::tmp_check/$who.sql";
	command_ok([ 'pg_dump', '-U', $role, '-f', $dump, '-d', $node->connstr($db) ], "$who dumps");
	run_as($role, 'postgres', "CREATE DATABASE restored_$who TEMPLATE template0");
	command_ok(
		[ 'psql', '-X', '-q', '-U', $role, '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr("restored_$who"), '-f', $dump ],
		"$who restores without an error");
	is(run_as($role, "restored_$who", 'SELECT last_value FROM snowflake_id_seq'),
		run_as($role, $db, 'SELECT last_value FROM snowflake_id_seq'), "$who: snowflake_id_seq is restored");
	my @after = split /\n/, run_as($role, "restored_$who", $insert);
	ids_are_new({}, "$who, restored", \@before, \@after);
	like(run_as('other', "restored_$who", 'SELECT snowflake_nextval()'), qr/^\d+$/, "$who: every role may use it still");
}

# A copy by template that is given another node number.
run_as('owner', 'postgres', 'CREATE DATABASE copy TEMPLATE owned');
$node->safe_psql('postgres', 'ALTER DATABASE copy SET snowflake.node = 2');
my @lists = finish_clients(start_clients($node, map { "\\c $_\n" . "SELECT snowflake_nextval('s');\n" x 2000 } 'owned', 'copy'));
ids_are_new(\%seen, 'template copy', @lists);
is(scalar(keys %seen), 4000, 'both got all their IDs');

# The same by a role that may not set the node.
is(run_as('other', 'copy', 'SELECT snowflake_node(snowflake_nextval())'), 2, 'the copy makes IDs of its node');

# Gone with the extension.
run_as('owner', 'copy', 'DROP EXTENSION snowflake CASCADE');
is(run_as('owner', 'copy', q{SELECT count(*) FROM pg_class WHERE relname = 'snowflake_id_seq'}), 0, 'dropped');

stop_clean($node);
done_testing();
