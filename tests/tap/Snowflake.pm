# What the cluster tests share: a cluster with the extension, clients that run at once, and the check of all IDs.
package Snowflake;

use strict;
use warnings;

use Exporter 'import';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(new_cluster start_clients finish_clients ids_are_new stop_clean);

# A running cluster with the extension in the database "postgres".
sub new_cluster
{
	my ($name, @conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init(allows_streaming => 1);
	$node->append_conf('postgresql.conf', "$_\n") foreach @conf;
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION snowflake');
	return $node;
}

# Starts one psql for each SQL text; each prints IDs, one a line. Files, so that they run on while the test does not look.
sub start_clients
{
	my ($node, @sql) = @_;
	my $n = 0;
	return map {
		my $path = "$PostgreSQL::Test::Utils::tmp_check/client_" . $n++;
		PostgreSQL::Test::Utils::append_to_file("$path.sql", $_);
		{   path => $path,
			run => IPC::Run::start(
				[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', "$path.sql" ],
				'>', "$path.out", '2>', "$path.err")
		};
	} @sql;
}

# Waits for them: the IDs of each, as a list of lists. A client whose server went away keeps what it got.
sub finish_clients
{
	return map {
		my $path = $_->{path};
		$_->{run}->finish;
		my $ids = PostgreSQL::Test::Utils::slurp_file("$path.out");
		unlink map { "$path.$_" } qw(sql out err);
		# The last line may be cut.
		[ grep { /^\d{18,19}$/ } split /\n/, $ids ];
	} @_;
}

# Tests that no ID came before, in this list or in %$seen, and that each client's increase.
sub ids_are_new
{
	my ($seen, $name, @lists) = @_;
	my ($ids, $repeats, $backwards) = (0, 0, 0);
	foreach my $list (@lists)
	{
		my $last = 0;
		foreach my $id (@$list)
		{
			$ids++;
			$repeats++ if $seen->{$id}++;
			$backwards++ if $id <= $last;
			$last = $id;
		}
	}
	is("$repeats repeats, $backwards backwards", '0 repeats, 0 backwards', "$name: $ids IDs are new and increase");
	return $ids;
}

# Stops the server and tests that its log tells of no panic, failed assertion, leaked pin or lock.
sub stop_clean
{
	my ($node) = @_;
	$node->stop;
	my @bad = grep { /PANIC|TRAP|leak|still referenced|terminated by signal (?!9)/ }
	  split /\n/, PostgreSQL::Test::Utils::slurp_file($node->logfile);
	is(join("\n", @bad), '', 'the log of ' . $node->name . ' is clean');
	return;
}

1;
