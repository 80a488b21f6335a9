# pg_upgrade from an older major: sequences, defaults and rows arrive, and no ID comes again.
use strict;
use warnings;

use Snowflake;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old_bindir = $ENV{OLD_PG_BINDIR} or plan skip_all => 'OLD_PG_BINDIR names no PostgreSQL to upgrade from';

my $new = PostgreSQL::Test::Cluster->new('new');
(my $old_prefix = $old_bindir) =~ s{/bin$}{};
my $old = PostgreSQL::Test::Cluster->new('old', install_path => $old_prefix);
plan skip_all => "$old_bindir is not of an older major" if $old->pg_version >= $new->pg_version;
my @alike = ('--locale=C', '--encoding=UTF8');
$old->init(extra => \@alike);
# New clusters have checksums from PostgreSQL 18 on, and both must be alike.
$new->init(extra => \@alike, $new->pg_version >= 18 ? (no_data_checksums => 1) : ());

$old->start;
$old->safe_psql('postgres', q{
	CREATE EXTENSION snowflake;
	CREATE SEQUENCE one;
	CREATE SEQUENCE cached CACHE 64;
	CREATE SEQUENCE stepped INCREMENT 50;
	CREATE SEQUENCE ahead;
	CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), node int GENERATED ALWAYS AS (snowflake_node(id)) STORED);
	CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval('cached'));
	CREATE INDEX ON events (snowflake_timestamp_ms(id));
	SELECT setval('ahead', snowflake_min(clock_timestamp() + interval '1 h'));
	CREATE ROLE plain LOGIN;
});

sub writers
{
	my ($times) = @_;
	return ((map { "SELECT snowflake_nextval('$_') FROM generate_series(1, 20);\n" x $times } qw(one cached stepped ahead)),
		"INSERT INTO orders SELECT FROM generate_series(1, 20) RETURNING id;\n" x $times,
		"INSERT INTO events SELECT FROM generate_series(1, 20) RETURNING id;\n" x $times);
}

# Clients are at it up to the very end.
my @running = start_clients($old, writers(100_000));
$old->poll_query_until('postgres', 'SELECT (SELECT count(*) > 100 FROM orders) AND (SELECT count(*) > 100 FROM events)')
  or die 'the clients do not start';
$old->stop('fast');
my @lists = finish_clients(@running);
$old->start;
my $state = 'SELECT sequencename, last_value, cache_size, increment_by, sequenceowner FROM pg_sequences ORDER BY 1';
my $before = $old->safe_psql('postgres', $state);

# PostgreSQL 15.20 marks every column with an option that 18.6 does not know: between those two pg_upgrade takes no table
# at all. It is taken off where the new one does not make it, too, so that what is ours is tested.
$new->start;
my $marked = 'SELECT count(*) FROM pg_attribute WHERE attoptions IS NOT NULL';
my $new_marks = $new->safe_psql('postgres', $marked);
$new->stop;
if (!$new_marks && $old->safe_psql('postgres', $marked))
{
	note 'the options of columns are taken off';
	$old->safe_psql($_, 'UPDATE pg_attribute SET attoptions = NULL') foreach qw(postgres template1);
}

my $rows = 'SELECT id FROM orders UNION ALL SELECT id FROM events ORDER BY 1';
my $rows_before = $old->safe_psql('postgres', $rows);
my %there = map { $_ => 1 } split /\n/, $rows_before;
is(scalar(grep { !$there{$_} } map { @$_ } @lists[ 4, 5 ]), 0, 'every row that a client saw is there');
$old->stop;

chdir $PostgreSQL::Test::Utils::tmp_check;
command_ok(
	[ 'pg_upgrade', '--no-sync', '-d', $old->data_dir, '-D', $new->data_dir, '-b', $old_bindir, '-B', $new->config_data('--bindir'),
		'-s', $new->host, '-p', $old->port, '-P', $new->port ],
	'from PostgreSQL ' . $old->pg_version . ' to ' . $new->pg_version);
$new->start;
is($new->safe_psql('postgres', $state), $before, 'each sequence is where it was');
ok($new->safe_psql('postgres', $rows) eq $rows_before, 'so are the rows');
my ($ret, $out, $err) = $new->psql('postgres', "\\set VERBOSITY verbose\nSELECT snowflake_currval('one')");
like($err, qr/55000: currval of sequence "one" is not yet defined/, 'no session has got an ID yet');
# The right to use it is the extension's, not one that a dump would name.
like($new->safe_psql('postgres', 'SELECT snowflake_nextval()', extra_params => [ '-U', 'plain' ]), qr/^\d+$/,
	'every role may use snowflake_id_seq still');

my @after = finish_clients(start_clients($new, writers(20)));
foreach my $n (0 .. $#lists)
{
	my $name = (qw(one cached stepped ahead orders events))[$n];
	my %largest;
	# Two clients share a sequence there.
	my @before = $name =~ /^(cached|events)$/ ? @lists[ 1, 5 ] : $lists[$n];
	my @since = $name =~ /^(cached|events)$/ ? @after[ 1, 5 ] : $after[$n];
	cmp_ok(ids_are_later(\%largest, $name, "$name, before", @before), '>', 0, "$name: clients were at it");
	cmp_ok(ids_are_later(\%largest, $name, "$name, after", @since), '>', 0, "$name: and go on");
}
stop_clean($new);
done_testing();
