# A standby: what it refuses, and that it goes on past all IDs of its primary once it is promoted, also when clients
# were at it up to the primary's end.
use strict;
use warnings;

use Snowflake;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# Replay compares each sequence's page with the primary's, and ends the standby where they differ.
my $primary = new_cluster('primary', 'wal_consistency_checking = sequence', 'autovacuum = off', 'log_statement = none');
my %largest;

$primary->safe_psql('postgres', q{
	CREATE SEQUENCE plain;
	CREATE SEQUENCE cached CACHE 64;
	CREATE TABLE rows (seq text, id bigint, PRIMARY KEY (seq, id));
});

# A standby of the server, connected to it.
sub new_standby
{
	my ($name, $of) = @_;
	$of->backup($name);
	my $standby = PostgreSQL::Test::Cluster->new($name);
	$standby->init_from_backup($of, $name, has_streaming => 1);
	$standby->start;
	$of->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")
	  or die "$name does not stream";
	return $standby;
}

# Two clients for each sequence, as many statements as given: IDs only, and rows.
sub writers
{
	my ($statements) = @_;
	return map {
		my $seq = $_;
		my $calls = "snowflake_nextval(''$seq'') FROM generate_series(1, 20)";
		map { "SELECT '$_' FROM generate_series(1, $statements) \\gexec\n" }
		  ("SELECT $calls", "INSERT INTO rows SELECT ''$seq'', $calls RETURNING id");
	} qw(plain cached);
}

sub new_ids
{
	my ($name, @lists) = @_;
	my ($plain, $plain_rows, $cached, $cached_rows) = @lists;
	cmp_ok(ids_are_later(\%largest, 'plain', "$name, CACHE 1", $plain, $plain_rows), '>', 0, "$name, CACHE 1: clients were at it");
	cmp_ok(ids_are_later(\%largest, 'cached', "$name, CACHE 64", $cached, $cached_rows), '>', 0, "$name, CACHE 64: clients were at it");
	return map { @$_ } $plain_rows, $cached_rows;
}

my $writers = q{FROM pg_stat_activity WHERE query LIKE '%snowflake_nextval(''%' AND pid <> pg_backend_pid()};

# Starts writers that do not end soon, and waits until all are at it and its standby, if any, has seen of it.
sub start_writers
{
	my ($node, @standby) = @_;
	my $last = $node->safe_psql('postgres', 'SELECT coalesce(max(id), 0) FROM rows');
	my @clients = start_clients($node, writers(200_000));
	foreach ($node, @standby)
	{
		$_->poll_query_until('postgres', "SELECT count(DISTINCT seq) = 2 FROM rows WHERE id > $last")
		  or die 'the clients do not start';
	}
	$node->poll_query_until('postgres', "SELECT count(*) = 2 $writers AND query LIKE 'SELECT%'")
	  or die 'the clients do not start';
	return @clients;
}

sub rows_are_there
{
	my ($node, $name, @ids) = @_;
	my %there = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', 'SELECT id FROM rows');
	is(scalar(grep { !$there{$_} } @ids), 0, "$name: every row that was committed is there");
	return;
}

# What a standby refuses, with and without IDs to be had from its state: in one session, which works on.
my $standby = new_standby('standby', $primary);
my @rows = new_ids('all is replayed', finish_clients(start_clients($primary, writers(50))));
$primary->wait_for_catchup($standby);
foreach my $seq (qw(plain cached))
{
	my ($ret, $out, $err) = $standby->psql('postgres', qq{
		\\set VERBOSITY verbose
		SELECT snowflake_nextval('$seq');
		SELECT snowflake_nextval('$seq') FROM generate_series(1, 100);
		SELECT snowflake_node(4194439168);
		SELECT last_value FROM $seq;
	}, on_error_stop => 0);
	is(scalar(() = $err =~ /25006: cannot execute snowflake_nextval\(\) in a read-only transaction/g),
		2, "$seq: calls are refused on a standby");
	my ($node_number, $last) = split /\n/, $out;
	is($node_number, 33, "$seq: decoding works there, and the session too");
	cmp_ok($last, '>=', $largest{$seq}, "$seq: the standby is past all that was issued");
}
rows_are_there($standby, 'all is replayed', @rows);

# The primary stops in order under load: it sends all that it has to the standby.
my @clients = start_writers($primary, $standby);
$primary->stop('fast');
push @rows, new_ids('stopped under load', finish_clients(@clients));
$standby->promote;
rows_are_there($standby, 'promoted', @rows);
push @rows, new_ids('promoted', finish_clients(start_clients($standby, writers(200))));

# The next standby gets the state from a backup, while clients are at it. The primary is killed under load; no client
# sees a commit that the standby does not have.
@clients = start_writers($standby);
my $second = new_standby('second', $standby);
is($standby->safe_psql('postgres', "SELECT count(pg_terminate_backend(pid)) $writers"), 4, 'a backup under load');
push @rows, new_ids('backup under load', finish_clients(@clients));
$standby->append_conf('postgresql.conf', "synchronous_standby_names = '*'");
$standby->reload;
$standby->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'})
  or die 'no synchronous standby';
@clients = start_writers($standby, $second);
$standby->kill9;
push @rows, new_ids('killed under load', finish_clients(@clients));
$second->promote;
rows_are_there($second, 'promoted again', @rows);
new_ids('promoted again', finish_clients(start_clients($second, writers(200))));

foreach my $node ($primary, $standby, $second)
{
	my @bad = grep { /inconsistent page|ERROR:(?!.*read-only transaction)|PANIC|TRAP/ } split /\n/, slurp_file($node->logfile);
	is(join("\n", @bad), '', 'no page of ' . $node->name . ' differs, no row was refused');
}
stop_clean($second);
done_testing();
