# Random operations of several sessions, checked against promises 1 to 3: unique, increasing, honest time.
# SNOWFLAKE_SEED replays a run, but for the time that each operation takes.
#
# What may come again is known from the state before each operation, and forgiven in these cases only:
# - RESTART, TRUNCATE or setval backwards while the sequence is ahead of the clock, or a crash that resets an unlogged one;
# - the same, and the clock steps back before the next call: nothing but the clock stands for the earlier IDs until then;
# - a crash that loses WAL, and the clock steps back before the next call;
# - a change of the sequence that is rolled back: the IDs handed out after it.
use strict;
use warnings;

use Snowflake;
use IPC::Run;
use List::Util qw(max min sum0);
use PostgreSQL::Test::Utils;
use Symbol 'gensym';
use Test::More;

use constant EPOCH_MS => 1288834974657;
# How far the clock and setval go either way, in s: together less than snowflake.max_clock_skew.
use constant { CLOCK_LIMIT => 2400, SETVAL_LIMIT => 600 };
use constant NOW_US => '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

my ($node, @seqs, @sessions, $monitor, %model, $offset, @log, @wrong, %count);

sub ms { my ($id) = @_; return ($id >> 22) + EPOCH_MS; }
sub one_of { return $_[ int(rand(@_)) ]; }

sub last_of_log { return join("\n", @log > 60 ? @log[ -60 .. -1 ] : @log); }

sub wrong
{
	my ($what) = @_;
	push @wrong, $what;
	push @log, "WRONG: $what";
	return;
}

#
# Sessions. Each is a psql that answers one operation after the other.
#

my $sessions = 0;

sub new_session
{
	my ($in, $out) = (gensym(), gensym());
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-f', '-' ],
		'<pipe', $in, '>pipe', $out, '2>', '/dev/null');
	my $session = { name => 's' . ++$sessions, in => $in, out => $out, run => $run, rest => '',
		open => 0, events => [], savepoints => [], since => {} };
	(undef, my $row) = ask($session, 'SELECT pg_backend_pid()');
	$session->{pid} = $row->[0];
	return $session;
}

sub end_session
{
	my ($session) = @_;
	close $session->{in};
	close $session->{out};
	$session->{run}->finish;
	return;
}

sub send_sql
{
	my ($session, @sql) = @_;
	push @log, map { "$session->{name}: $_" } @sql;
	my $text = join('', map { "$_;\n\\echo state :SQLSTATE\n" } @sql) . "\\echo end\n";
	# Short enough for the pipe, so that this never waits.
	syswrite($session->{in}, $text) == length $text or die "write: $!";
	return;
}

# The rows that came, and the first SQLSTATE that is not success.
sub receive
{
	my ($session) = @_;
	my $waits = 0;
	while ($session->{rest} !~ /^end\n/m)
	{
		my $ready = '';
		vec($ready, fileno($session->{out}), 1) = 1;
		if (select($ready, undef, undef, 0.05) > 0)
		{
			sysread($session->{out}, $session->{rest}, 65536, length $session->{rest})
			  or die "the session ended after:\n" . last_of_log();
		}
		elsif (++$waits > 20 * $PostgreSQL::Test::Utils::timeout_default)
		{
			die "no answer to the last of:\n" . last_of_log();
		}
		elsif ($session->{pid} && $session != $monitor)
		{
			# A lock that another session's transaction holds is not had: then nothing happened. Not lock_timeout:
			# PostgreSQL's timers go by the clock, and after a step they may fire an hour late.
			ask($monitor, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity"
				. " WHERE pid = $session->{pid} AND wait_event_type = 'Lock'");
			pop @log;
		}
	}
	my @lines = split /\n/, $session->{rest};
	$session->{rest} = '';
	my ($state) = grep { $_ ne '00000' } map { /^state (\S+)/ ? $1 : () } @lines;
	push @log, "$session->{name}: $state" if $state;
	wrong("error $state") if $state && $state ne '57014';
	return ($state, map { [ split /\|/ ] } grep { !/^(state|end)\b/ } @lines);
}

sub ask
{
	my ($session, @sql) = @_;
	send_sql($session, @sql);
	return receive($session);
}

#
# The model of a sequence.
#
# top       the latest millisecond that it has been seen in
# forgiven  ranges of milliseconds whose earlier IDs may come again, in the order that they arose. An ID's "since" is how
#           many there were when it was reserved: the later ones are about it.
# loose     nothing but the clock stands between its IDs and the next: no call came since it was reset
# ids       all that was handed out, by (millisecond, node)
# greatest  for each node, of all sessions and of each
#

sub is_forgiven
{
	my ($m, $id, $since) = @_;
	my $ms = ms($id);
	foreach my $range (@{ $m->{forgiven} }[ $since .. $#{ $m->{forgiven} } ])
	{
		return 1 if $range->[0] < $ms && $ms <= $range->[1];
	}
	return 0;
}

# What the promise of order is about anew, after some IDs are forgiven.
sub find_greatest
{
	my ($m) = @_;
	$m->{greatest} = {};
	$_->{gone} || $_->{core} || note_greatest($m, $_) foreach map { @{ $_->{list} } } values %{ $m->{ids} };
	return;
}

sub note_greatest
{
	my ($m, $entry) = @_;
	return if is_forgiven($m, $entry->{id}, $entry->{since});
	foreach my $key ("all $entry->{node}", "$entry->{session} $entry->{node}")
	{
		$m->{greatest}{$key} = max($m->{greatest}{$key} // 0, $entry->{id});
	}
	return;
}

sub forgive
{
	my ($m, $low, $high) = @_;
	return if $low >= $high;
	push @{ $m->{forgiven} }, [ $low, $high ];
	push @log, "forgiven: $low to $high";
	$count{forgiven}++;
	find_greatest($m);
	return;
}

# An ID stands for as many as INCREMENT says: none of them was handed out before.
sub hand_out
{
	my ($m, $entry) = @_;
	my $there = $m->{ids}{ $entry->{id} >> 12 } //= { end => 0, list => [] };
	my $end = $entry->{id} + $entry->{increment};
	if ($entry->{id} < $there->{end} && !$entry->{core})
	{
		foreach my $old (grep { !$_->{gone} } @{ $there->{list} })
		{
			next if $old->{id} >= $end || $old->{id} + $old->{increment} <= $entry->{id};
			if (is_forgiven($m, $entry->{id}, min($old->{since}, $entry->{since}))) { $count{again}++; }
			else { wrong("$entry->{id} for $entry->{session} repeats $old->{id} for $old->{session}"); }
		}
	}
	push @{ $there->{list} }, $entry;
	$there->{end} = max($there->{end}, $end);
	$m->{top} = max($m->{top}, ms($entry->{id}));
	return;
}

#
# What is done inside a transaction, and is undone with it.
#

sub event
{
	my ($session, $seq, $entry) = @_;
	push @{ $session->{events} }, { seq => $seq, entry => $entry } if $session->{open};
	return;
}

# Undoes what came after the first so many events.
sub undo
{
	my ($session, $kept) = @_;
	my %changed;
	foreach my $event (splice @{ $session->{events} }, $kept)
	{
		if (!$event->{entry}) { $changed{ $event->{seq} } = 1; }
		elsif ($changed{ $event->{seq} }) { $event->{entry}{gone} = 1; }
	}
	foreach my $seq (keys %changed)
	{
		$model{$seq}{loose} = 1;
		find_greatest($model{$seq});
	}
	return;
}

sub close_transaction
{
	my ($session) = @_;
	$session->{$_} = [] foreach qw(events savepoints);
	$session->{since} = {};
	$session->{open} = 0;
	return;
}

sub roll_back
{
	my ($session) = @_;
	my $to = @{ $session->{savepoints} } && rand() < 0.6 ? int(rand(@{ $session->{savepoints} })) : undef;
	if (defined $to)
	{
		ask($session, "ROLLBACK TO p$to");
		undo($session, $session->{savepoints}[$to]);
		$#{ $session->{savepoints} } = $to;
	}
	else
	{
		ask($session, 'ROLLBACK');
		undo($session, 0);
		close_transaction($session);
	}
	return;
}

# Whether the operation failed, for want of a lock: then its transaction has to be rolled back.
sub failed
{
	my ($session, $state) = @_;
	return 0 unless $state;
	$count{locked}++;
	roll_back($session) if $session->{open};
	return 1;
}

#
# The operations.
#

# The state: last_value, INCREMENT, CACHE and the clock's millisecond.
sub look_sql
{
	my ($seq) = @_;
	return "SELECT last_value, seqincrement, seqcache, " . NOW_US . " FROM $seq, pg_sequence WHERE seqrelid = '$seq'::regclass";
}

sub looked
{
	my ($seq, $row) = @_;
	my ($last, $increment, $cache, $us) = @$row;
	my $now = int($us / 1000);
	my $m = $model{$seq};
	wrong("$seq at " . ms($last) . " is ahead of the clock, $now, and nothing moved it there")
	  if ms($last) > $now + 2 && ms($last) > $m->{top};
	return { last => $last, ms => ms($last), increment => $increment, cache => $cache, now => $now };
}

sub look
{
	my ($session, $seq) = @_;
	my ($state, $row) = ask($session, look_sql($seq));
	return if failed($session, $state);
	return looked($seq, $row);
}

# Calls by one session or by several at once.
sub calls
{
	my ($seq, $calls, @callers) = @_;
	my $m = $model{$seq};
	my $sql = "SELECT " . NOW_US . ", snowflake_nextval('$seq'), " . NOW_US
	  . ", snowflake_current_node() FROM generate_series(1, $calls)";
	send_sql($_, one_of('RESET ROLE', 'SET ROLE caller'), look_sql($seq), $sql) foreach @callers;
	# Which of several comes first is not known.
	my %greatest = %{ $m->{greatest} };
	my $ranges = @{ $m->{forgiven} };
	my @entries;
	foreach my $session (@callers)
	{
		my ($state, $row, @rows) = receive($session);
		next if failed($session, $state);
		my $seen = looked($seq, $row);
		# With CACHE an ID may have been reserved at any time since the transaction's first call.
		$session->{since}{$seq} //= $ranges if $session->{open};
		my $since = $seen->{cache} > 1 && $session->{open} ? $session->{since}{$seq} : $ranges;
		wrong(scalar(@rows) . " IDs for $calls calls") if @rows != $calls;
		foreach (@rows)
		{
			my ($before, $id, $after, $node_id) = @$_;
			my $ms = ms($id);
			my $entry = { id => $id, increment => $seen->{increment}, since => $since, node => $node_id, session => $session->{name} };
			my $old = $since < $ranges && is_forgiven($m, $id, $since);

			wrong("$id is of node " . (($id >> 12) & 1023) . ", not $node_id") if (($id >> 12) & 1023) != $node_id;
			wrong("$id is $ms, before its call at $before us") if $ms < int($before / 1000);
			# Ahead of the clock it moves on from where it was, a millisecond for each call at the most.
			my $limit = $seen->{ms} > $seen->{now} + 1 ? $seen->{ms} + 2 + $calls * @callers : 0;
			wrong("$id is $ms, ahead of the clock at $after us") if $ms > max(int($after / 1000) + 1, $limit) && !$old;
			my $counter = $id & 4095;
			my $n = $seen->{increment};
			wrong("the block of $id is not in one millisecond") if $n > 1 && ($counter < $n || $counter > 4096 - $n);
			my $key = $seen->{cache} == 1 ? "all $node_id" : "$session->{name} $node_id";
			wrong("$id is not greater than $greatest{$key}, $key") if $id <= ($greatest{$key} // 0) && !$old;
			$greatest{"$session->{name} $node_id"} = $id unless $old;
			hand_out($m, $entry);
			event($session, $seq, $entry);
			push @entries, $entry;
		}
		$count{ids} += @rows;
		$m->{loose} = 0;
	}
	note_greatest($m, $_) foreach @entries;
	return;
}

# PostgreSQL's own nextval: nothing is promised of its values, but that ours differ.
sub core
{
	my ($session, $seq) = @_;
	my $seen = look($session, $seq) or return;
	my ($state, @rows) = ask($session, "SELECT nextval('$seq') FROM generate_series(1, " . one_of(1, 3, 40) . ')');
	return if failed($session, $state);
	foreach (@rows)
	{
		my $entry = { id => $_->[0], increment => $seen->{increment}, since => 0, core => 1 };
		hand_out($model{$seq}, $entry);
		event($session, $seq, $entry);
		# What it reserved besides.
		$model{$seq}{top} = max($model{$seq}{top}, ms($_->[0] + $seen->{increment} * $seen->{cache}) + 1);
	}
	return;
}

# Moves the sequence to a value.
sub reset_to
{
	my ($session, $seq, $sql, $value) = @_;
	my $seen = look($session, $seq) or return;
	$value = $value->($seen) if ref $value;
	$sql =~ s/VALUE/$value/;
	my ($state) = ask($session, 'RESET ROLE', $sql);
	return if failed($session, $state);
	my $m = $model{$seq};
	event($session, $seq) if $sql !~ /setval/;
	$m->{top} = max($m->{top}, ms($value));
	$m->{loose} = 1;
	forgive($m, max($seen->{now} + 1, ms($value)), $m->{top}) if $seen->{ms} > $seen->{now} + 1 && ms($value) < $seen->{ms};
	return;
}

# A value to move to: the largest ID, an earlier one, one of the clock's time, one of another time.
sub some_value
{
	my ($seen) = @_;
	my $id = sub { return max(1, $_[0] - EPOCH_MS << 22 | one_of(1, 2, 1023) << 12 | int(rand(4096))); };
	return one_of(
		$seen->{last}, $seen->{last} > 5000 ? $seen->{last} - int(rand(5000)) : 1,
		1, $id->($seen->{now}), $id->($seen->{now} + int(rand(5)) - 2),
		$id->($seen->{now} + int((rand(2) - 1) * 1000 * SETVAL_LIMIT)));
}

sub alter
{
	my ($session, $seq, $what) = @_;
	my ($state) = ask($session, 'RESET ROLE', "ALTER SEQUENCE $seq $what");
	event($session, $seq) unless failed($session, $state);
	return;
}

sub step_clock
{
	my $step = one_of(0.001, 0.01, 0.1, 1, 20, 600, 1800) * (rand(2) - 1);
	$step = -$step if abs($offset + $step) > CLOCK_LIMIT;
	$offset += $step;
	set_clock($node, $offset);
	push @log, "clock at $offset s";
	return if $step > 0;
	my (undef, $row) = ask($monitor, 'SELECT ' . NOW_US);
	$_->{loose} && forgive($_, int($row->[0] / 1000) + 1, $_->{top}) foreach values %model;
	return;
}

sub start_server
{
	has_clock() ? start_with_clock($node) : start_again($node);
	$monitor = new_session();
	@sessions = map { new_session() } 1 .. 3;
	return;
}

sub crash_server
{
	my ($how) = @_;
	# What has been handed out is on disk then.
	my $flush = $how ne 'fast' && rand() < 0.5;
	ask($monitor, 'INSERT INTO flushed DEFAULT VALUES') if $flush;
	my (undef, $row) = ask($monitor, 'SELECT ' . NOW_US);
	my $now = int($row->[0] / 1000);
	push @log, "stop: $how, " . ($flush ? '' : 'not ') . 'flushed';
	$how eq 'kill9' ? $node->kill9 : $node->stop($how);
	foreach (@sessions) { undo($_, 0); }
	end_session($_) foreach @sessions, $monitor;
	start_server();
	foreach my $seq (@seqs)
	{
		my $m = $model{$seq};
		my ($state, $look) = ask($monitor, look_sql($seq));
		next if $how eq 'fast';
		my $ms = ms($look->[0]);
		if ($seq eq 'unlogged') { forgive($m, $now + 1, $m->{top}); }
		else { $m->{top} = max($m->{top}, $ms); }
		$m->{loose} = 1 if !$flush || $seq eq 'unlogged';
		# How many values it may take without logging is copied by ALTER, and then holds no longer.
		$_->{gone} = 1 foreach grep { $_->{core} } map { @{ $_->{list} } } values %{ $m->{ids} };
	}
	return;
}

sub operation
{
	my $session = one_of(@sessions);
	my $seq = one_of(@seqs);
	# A transaction goes on with what it began with, or locks would keep most from happening.
	$seq = $session->{events}[-1]{seq} if @{ $session->{events} } && rand() < 0.7;
	my @operations = (
		[ 30, calls => sub { calls($seq, one_of(1, 1, 2, 10, 100), $session); } ],
		[ 8, calls_at_once => sub { calls($seq, one_of(1, 10, 50), @sessions); } ],
		[ 8, begin => sub {
			return if $session->{open};
			ask($session, 'BEGIN');
			$session->{open} = 1;
		} ],
		[ 10, commit => sub {
			return unless $session->{open};
			ask($session, 'COMMIT');
			close_transaction($session);
		} ],
		[ 5, rollback => sub { roll_back($session) if $session->{open}; } ],
		[ 5, savepoint => sub {
			return unless $session->{open};
			ask($session, 'SAVEPOINT p' . @{ $session->{savepoints} });
			push @{ $session->{savepoints} }, scalar @{ $session->{events} };
		} ],
		[ 8, setval => sub { reset_to($session, $seq, "SELECT setval('$seq', VALUE, " . one_of('true', 'false') . ') IS NULL', \&some_value); } ],
		[ 5, restart => sub { reset_to($session, $seq, "ALTER SEQUENCE $seq RESTART", 1); } ],
		[ 2, restart_with => sub { reset_to($session, $seq, "ALTER SEQUENCE $seq RESTART VALUE", \&some_value); } ],
		[ 4, truncate => sub { reset_to($session, 'owned', 'TRUNCATE t RESTART IDENTITY', 1); } ],
		[ 5, increment => sub { alter($session, $seq, 'INCREMENT ' . one_of(1, 1, 2, 50, 2048)); } ],
		[ 5, cache => sub { alter($session, $seq, 'CACHE ' . one_of(1, 1, 2, 64, 4096)); } ],
		[ 2, alter => sub { alter($session, $seq, one_of('MINVALUE 0', 'NO MINVALUE', 'START 7', 'START 1', 'NO CYCLE')); } ],
		[ 4, core => sub { core($session, $seq); } ],
		[ 4, node => sub { ask($session, 'RESET ROLE', 'SET ' . one_of('', 'LOCAL') . ' snowflake.node = ' . one_of(1, 2, 1023)); } ],
		[ has_clock() ? 8 : 0, clock => \&step_clock ],
		[ 1, crash => sub { crash_server(one_of(qw(kill9 immediate fast))); } ]);
	my $at = rand(sum0(map { $_->[0] } @operations));
	foreach (@operations)
	{
		my ($weight, $name, $do) = @$_;
		$at -= $weight;
		next if $at >= 0;
		$count{$name}++;
		$do->();
		last;
	}
	return;
}

$node = has_clock() ? new_cluster_with_clock('model', 'autovacuum = off', 'max_connections = 20') : new_cluster('model');
note('libfaketime is not installed: the clock does not step') unless has_clock();
@seqs = qw(plain owned);
$node->safe_psql('postgres', q{CREATE ROLE caller; CREATE TABLE t (id bigint); CREATE TABLE flushed ()});
if ($node->pg_version >= 15) { push @seqs, 'unlogged'; }

my $seed = seed();
foreach my $round (0 .. rounds(1, 20) - 1)
{
	srand($seed + $round);
	(%model, @log, @wrong, %count) = ();
	$offset = 0;
	set_clock($node, 0) if has_clock();
	foreach my $seq (@seqs)
	{
		my $kind = $seq eq 'unlogged' ? 'UNLOGGED' : '';
		$node->safe_psql('postgres',
			"DROP SEQUENCE IF EXISTS $seq; CREATE $kind SEQUENCE $seq; GRANT SELECT, USAGE ON SEQUENCE $seq TO caller");
		$model{$seq} = { top => 0, forgiven => [], loose => 1, ids => {}, greatest => {} };
	}
	$node->safe_psql('postgres', 'ALTER SEQUENCE owned OWNED BY t.id');
	$monitor = new_session();
	@sessions = map { new_session() } 1 .. 3;
	for (my $operations = 0; $operations < 600 && !@wrong; $operations++) { operation(); }
	end_session($_) foreach @sessions, $monitor;

	is(join("\n", @wrong), '', 'nothing wrong with SNOWFLAKE_SEED=' . ($seed + $round))
	  or diag(last_of_log());
	cmp_ok($count{ids} // 0, '>', 600, 'and it made IDs') unless @wrong;
	note(join ', ', map { "$_ $count{$_}" } sort keys %count);
}

stop_clean($node);
done_testing();
