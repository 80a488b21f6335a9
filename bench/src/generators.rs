//! What makes keys: this extension, what PostgreSQL brings along, and what else is installed.

use postgres::Client;

/// How many sequences each generator that needs one has: so many calls in one row go beyond no sequence's rate.
pub const SEQUENCES: usize = 10;

#[derive(Clone)]
pub struct Generator {
    name: String,
    column_type: &'static str,
    /// The call, with `$` where the sequence's number goes.
    call: String,
}

impl Generator {
    fn new(name: &str, column_type: &'static str, call: &str) -> Self {
        Self { name: name.into(), column_type, call: call.into() }
    }

    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Of the column that it is the default of.
    pub fn column_type(&self) -> &'static str {
        self.column_type
    }

    /// The call, on one of its sequences.
    pub fn call(&self, sequence: usize) -> String {
        self.call.replace('$', &sequence.to_string())
    }
}

/// What the targets compare.
#[derive(Clone)]
pub struct Rivals {
    pub ours: Generator,
    pub ours_64: Generator,
    pub ours_4096: Generator,
    pub core: Generator,
    pub core_64: Generator,
}

impl Rivals {
    /// Those with CACHE 1, then those with CACHE 64.
    pub fn all(&self) -> [Generator; 4] {
        [&self.ours, &self.core, &self.ours_64, &self.core_64].map(Clone::clone)
    }
}

/// Makes the extension, the sequences and functions.
pub fn create(client: &mut Client) -> Rivals {
    client.batch_execute("CREATE EXTENSION snowflake").expect("create the extension");
    for (prefix, cache) in
        [("ours", 1), ("ours64", 64), ("ours4096", 4096), ("core", 1), ("core64", 64), ("own", 1)]
    {
        for n in 0..SEQUENCES {
            let create = format!("CREATE SEQUENCE {prefix}_{n} CACHE {cache}");
            client.batch_execute(&create).expect("create a sequence");
        }
    }
    client.batch_execute(RECIPE).expect("create the recipe");
    Rivals {
        ours: Generator::new("snowflake_nextval", "bigint", "snowflake_nextval('ours_$')"),
        ours_64: Generator::new(
            "snowflake_nextval, CACHE 64",
            "bigint",
            "snowflake_nextval('ours64_$')",
        ),
        ours_4096: Generator::new(
            "snowflake_nextval, CACHE 4096",
            "bigint",
            "snowflake_nextval('ours4096_$')",
        ),
        core: Generator::new("nextval", "bigint", "nextval('core_$')"),
        core_64: Generator::new("nextval, CACHE 64", "bigint", "nextval('core64_$')"),
    }
}

/// What people write themselves: the clock beside a counter. (It repeats IDs when a backend is delayed between the
/// two, or the clock steps back.)
const RECIPE: &str = "
CREATE FUNCTION recipe(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN ((ms - 1288834974657) << 22) | (1 << 12) | (nextval(seq) % 1024);
END $$";

/// All others: PostgreSQL's UUIDs, the recipe, and an extension for UUIDs that sort by time, where it is installed.
pub fn others(client: &mut Client) -> Vec<Generator> {
    let mut others = vec![
        Generator::new(
            "snowflake_generate",
            "bigint",
            "snowflake_generate(nextval('own_$') % 4096)",
        ),
        Generator::new("PL/pgSQL recipe", "bigint", "recipe('own_$')"),
        Generator::new("gen_random_uuid (v4)", "uuid", "gen_random_uuid()"),
    ];
    if client.query_one("SELECT to_regproc('uuidv7') IS NOT NULL", &[]).expect("query").get(0) {
        others.push(Generator::new("uuidv7", "uuid", "uuidv7()"));
    }
    if client.batch_execute("CREATE EXTENSION pg_uuidv7").is_ok() {
        others.push(Generator::new("pg_uuidv7", "uuid", "uuid_generate_v7()"));
    }
    others
}
