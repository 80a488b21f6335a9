# The server's clock is set back and forth while clients are at it: no repeat, no stall, order kept, and the lead over the
# clock does not grow. Too large a step back is an error, and each way out that it names is one.
use strict;
use warnings;

use Snowflake;
use Test::More;

plan skip_all => 'libfaketime is not installed' unless has_clock();

my $node = new_cluster_with_clock('clock', 'autovacuum = off', 'log_statement = none', 'max_connections = 30');
my @seqs = qw(plain cached);
$node->safe_psql('postgres', q{
	CREATE SEQUENCE plain;
	CREATE SEQUENCE cached CACHE 64;
	CREATE TABLE rows (id bigint PRIMARY KEY DEFAULT snowflake_nextval('plain'));
});

# Eight clients, four for each sequence, with waits for more than there is in a millisecond.
sub start_writers
{
	my @sql = map { "SELECT snowflake_nextval('$_') FROM generate_series(1, 10);\n"
		  . "SELECT count(snowflake_nextval('$_')) FROM generate_series(1, 500);\n" } @seqs;
	my @clients = start_clients($node, (map { $_ x 20_000 } @sql) x 4);
	goes_on('clients start', 10);
	return @clients;
}

# Of each client, and of each sequence.
sub are_new
{
	my ($name, @lists) = @_;
	foreach my $n (0, 1)
	{
		cmp_ok(ids_are_new({}, "$name, $seqs[$n]", @lists[ grep { $_ % 2 == $n } 0 .. $#lists ]), '>', 1000, "$name: clients got IDs");
	}
	return;
}

sub one { my ($sql) = @_; return $node->safe_psql('postgres', $sql); }

# How far a sequence is ahead of the clock, in ms. One that was held up after it read the state tells less.
sub lead
{
	my ($seq) = @_;
	return one("SELECT snowflake_timestamp_ms(last_value) - (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM $seq");
}

# The sequences move on by so many ms.
sub goes_on
{
	my ($name, $ms) = @_;
	foreach my $seq (@seqs)
	{
		my $last = one("SELECT last_value FROM $seq");
		ok($node->poll_query_until('postgres', "SELECT last_value > $last + (${ms}::bigint << 22) FROM $seq"), "$name: $seq goes on");
	}
	return;
}

# One step after the other.
my @clients = start_writers();
my $offset = 0;
foreach my $to (-0.1, 0, -3600, 0, 3600, 0)
{
	my $ahead = $offset > $to;
	set_clock($node, $to);
	my %before = map { $_ => lead($_) } @seqs;
	goes_on("clock at $to s", 300);
	foreach my $seq (@seqs)
	{
		# The fault would be seconds: eight clients that each move it for their own wait.
		cmp_ok(lead($seq), '<', $before{$seq} + 200, "clock at $to s: the lead of $seq does not grow");
		cmp_ok($before{$seq}, '>', ($offset - $to) * 900, "clock at $to s: $seq stays ahead") if $ahead && $offset - $to > 1;
	}
	$offset = $to;
}
are_new('steps', stop_clients($node, @clients));

# The last step left the sequences an hour ahead. With three more it is too much.
set_clock($node, -3 * 3600);
foreach my $seq (@seqs)
{
	my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT snowflake_nextval('$seq');\nSELECT 'works';",
		on_error_stop => 0);
	like($err, qr/ERROR:  55000: sequence "$seq" is 14[34]\d{5} ms ahead of the clock, more than snowflake.max_clock_skew allows \(7200000 ms\)/,
		"$seq: four hours are refused");
	like($err, qr/Mend the server's clock, or raise snowflake.max_clock_skew. .* setval\('public.$seq', coalesce\(max\(id\), 1\)\)/,
		"$seq: and how to go on is told");
	is($out, 'works', 'the session works');
	my $last = one("SELECT last_value FROM $seq");
	cmp_ok(one("SET snowflake.max_clock_skew = '5h'; SELECT snowflake_nextval('$seq')"), '>', $last, "$seq: it helps to raise the setting");
	set_clock($node, 0);
	cmp_ok(one("SELECT snowflake_nextval('$seq')"), '>', $last, "$seq: it helps to mend the clock");
	set_clock($node, -3 * 3600);
	one("SELECT setval('$seq', snowflake_min(clock_timestamp() - interval '1 min'))");
	one("SELECT snowflake_nextval('$seq')");
	cmp_ok(lead($seq), '<', 1000, "$seq: it helps to set it to the largest ID in use");
}

# A clock that no ID can hold.
foreach my $years (-25, 65)
{
	set_clock($node, $years * 365.25 * 86400);
	my ($ret, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT snowflake_nextval('plain')");
	like($err, qr/ERROR:  22008: the server's clock shows \d+ ms, outside the range of Snowflake IDs/, "a clock $years years off is refused");
}

# A random walk of steps from a millisecond to minutes, never two hours from where it has been.
set_clock($node, 0);
one("SELECT setval('$_', 1, false)") foreach @seqs;
my $seed = seed();
srand $seed;
@clients = start_writers();
my ($steps, $stalls) = (rounds(100, 400), 0);
$offset = 0;
foreach (1 .. $steps)
{
	my $step = (0.001, 0.002, 0.01, 0.1, 1, 10, 60, 600)[ int(rand(8)) ] * (rand() < 0.5 ? -1 : 1) * (0.5 + rand());
	$step = -$step if abs($offset + $step) > 3000;
	$offset += $step;
	my $last = one('SELECT last_value FROM plain');
	set_clock($node, $offset);
	$node->poll_query_until('postgres', "SELECT last_value > $last FROM plain") or $stalls++;
}
is($stalls, 0, "a walk of $steps steps, seed $seed: no stall");
are_new("a walk of $steps steps, seed $seed", stop_clients($node, @clients));

# A crash together with a step back: what is committed does not come again, though it is of the future then.
set_clock($node, 0);
my $insert = "INSERT INTO rows SELECT FROM generate_series(1, 10) RETURNING id;\n";
foreach my $back (-1, -60, -1800)
{
	@clients = start_clients($node, (map { $insert x 20_000 } 1 .. 4));
	goes_on_rows();
	$node->kill9;
	my @before = finish_clients(@clients);
	set_clock($node, $back);
	start_with_clock($node);
	my @after = finish_clients(start_clients($node, (map { $insert x 20 } 1 .. 4)));
	cmp_ok(ids_are_new({}, "a crash and $back s", @before, @after), '>', 800, "a crash and $back s: clients were at it before and after");
	is(scalar(map { @$_ } @after), 800, "a crash and $back s: every row was taken");
}

sub goes_on_rows
{
	my $count = one('SELECT count(*) FROM rows');
	$node->poll_query_until('postgres', "SELECT count(*) > $count + 100 FROM rows") or die 'the clients do not start';
	return;
}

stop_clean($node);
done_testing();
