//! Databases and clouds: reading is ordinary, the rest is where other people's data is.

use crate::effects::call::Call;
use crate::effects::code;
use crate::effects::row::{Deed, On, Row};
use crate::effects::{Act, Effect};
use crate::shell::Word;

pub(super) const ROWS: &[Row] = &[
    Row::of(&["psql", "pgcli"])
        .values("cdfhopUvFPRTL")
        .longs(&[
            "command", "dbname", "file", "host", "output", "port", "username", "set", "variable",
            "log-file", "pset",
        ])
        .on(&[
            ("o", On::Writes),
            ("output", On::Writes),
            ("L", On::Writes),
            ("log-file", On::Writes),
        ])
        .more(psql),
    Row::of(&["mysql", "mariadb", "mycli"])
        .values("eDhPu")
        .longs(&[
            "execute", "database", "host", "port", "user", "protocol", "socket",
        ])
        .on(&[
            ("tee", On::Writes),
            ("pager", On::Runs),
            ("init-command", On::With(Deed::Unclear)),
            ("defaults-file", On::Value),
        ])
        .more(mysql),
    Row::of(&["sqlite3", "sqlite", "litecli", "duckdb"]).more(sqlite),
    Row::of(&["redis-cli", "valkey-cli", "keydb-cli"])
        .values("hpuan")
        .longs(&["user", "pass"])
        .on(&[("eval", On::With(Deed::Destroys)), ("rdb", On::Writes)])
        .more(redis),
    Row::of(&[
        "mongosh",
        "mongo",
        "clickhouse-client",
        "clickhouse",
        "cqlsh",
        "influx",
        "sqlcmd",
        "sqlplus",
        "bq",
        "snowsql",
        "trino",
        "presto",
        "beeline",
        "hive",
        "spark-sql",
        "usql",
        "neo4j",
        "cypher-shell",
        "etcdctl",
        "consul",
        "nomad",
    ])
    .more(queries),
    Row::does(
        &[
            "pg_dump",
            "pg_dumpall",
            "mysqldump",
            "mongodump",
            "pg_isready",
            "mysqladmin-ping",
            "mongoexport",
        ],
        &[Deed::Network],
    )
    .values("dhpUFfnt")
    .on(&[
        ("f", On::Writes),
        ("file", On::Writes),
        ("o", On::Writes),
        ("out", On::Writes),
        ("result-file", On::Writes),
        ("r", On::Writes),
    ]),
    Row::does(
        &[
            "pg_restore",
            "dropdb",
            "dropuser",
            "mysqladmin",
            "mongorestore",
            "mongoimport",
            "createuser",
            "initdb",
            "pg_resetwal",
            "pg_upgrade",
        ],
        &[Deed::Destroys],
    ),
    Row::of(&[
        "createdb",
        "pg_ctl",
        "pg_ctlcluster",
        "pg_lsclusters",
        "pg_config",
        "vacuumdb",
        "reindexdb",
        "pgbench",
    ])
    .more(cluster),
    Row::of(&[
        "dbmate",
        "migrate",
        "flyway",
        "liquibase",
        "sqlx",
        "diesel",
        "atlas",
        "sqlc",
        "sea",
        "refinery",
        "supabase",
        "hasura",
    ])
    .more(migrations),
    Row::of(&["aws"])
        .values("")
        .longs(&["region", "profile", "output", "query", "endpoint-url"])
        .more(aws),
    Row::of(&[
        "gcloud",
        "gsutil",
        "az",
        "doctl",
        "heroku",
        "fly",
        "flyctl",
        "vercel",
        "netlify",
        "wrangler",
        "firebase",
        "railway",
        "render",
        "linode-cli",
        "hcloud",
        "oci",
        "ibmcloud",
        "ali",
        "s3cmd",
        "mc",
        "s5cmd",
        "sam",
        "serverless",
        "sls",
        "cdk",
        "amplify",
        "eb",
        "pulumi",
        "ansible",
        "ansible-playbook",
        "salt",
        "chef",
        "puppet",
        "stripe",
        "twilio",
        "sentry-cli",
        "datadog-ci",
        "newrelic",
        "pscale",
        "turso",
        "neonctl",
        "atlas-cli",
        "expo-cli",
        "eas",
        "surge",
        "now",
    ])
    .more(cloud),
    Row::of(&["terraform", "tofu", "terragrunt", "opentofu"])
        .longs(&["chdir"])
        .one_dash()
        .on(&[("chdir", On::At)])
        .subs(&[
            Row::does(&["init", "get", "providers"], &[Deed::Installs])
                .one_dash()
                .on(&[("plugin-dir", On::Value)]),
            Row::does(&["plan"], &[Deed::Opaque])
                .one_dash()
                .longs(&["var", "target", "replace", "parallelism"])
                .on(&[("out", On::Writes), ("var-file", On::Reads)]),
            Row::of(&[
                "validate",
                "fmt",
                "show",
                "output",
                "graph",
                "version",
                "test",
                "metadata",
                "help",
                "hclfmt",
                "run-all-plan",
            ])
            .one_dash(),
            Row::of(&["state", "workspace"]).subs(&[
                Row::of(&["list", "show", "pull", "select", "new"]).one_dash(),
                Row::does(
                    &["rm", "mv", "push", "replace-provider", "delete"],
                    &[Deed::Deploys],
                )
                .one_dash(),
            ]),
            Row::does(
                &[
                    "apply",
                    "destroy",
                    "import",
                    "taint",
                    "untaint",
                    "force-unlock",
                    "refresh",
                    "run-all",
                    "login",
                    "logout",
                    "console",
                ],
                &[Deed::Deploys],
            )
            .one_dash(),
        ]),
];

/// Texts of SQL in options and operands.
fn queries_of(call: &Call<'_>, names: &[&'static str]) -> Vec<Word> {
    call.options
        .iter()
        .filter(|(name, _)| names.contains(&name.as_str()))
        .filter_map(|(_, value)| value.clone())
        .collect()
}

fn psql(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.push(Effect::Deed(Deed::Network));
    let mut texts = queries_of(call, &["c", "command"]);
    for file in queries_of(call, &["f", "file"]) {
        out.push(Effect::File(Act::Read, file));
        out.push(Effect::Deed(Deed::Destroys));
    }
    let shows = call.has(&["l", "list", "f", "file"]) || call.is_only(&["-V", "--version"]);
    if texts.is_empty() && !shows {
        out.push(Effect::Fed(code::Language::Sql));
    }
    for text in texts.drain(..) {
        code::sql(&text, out);
    }
}

fn mysql(call: &Call<'_>, out: &mut Vec<Effect>) {
    out.push(Effect::Deed(Deed::Network));
    let texts = queries_of(call, &["e", "execute"]);
    if texts.is_empty() && !call.is_only(&["-V", "--version"]) {
        out.push(Effect::Fed(code::Language::Sql));
    }
    for text in texts {
        code::sql(&text, out);
    }
}

/// Words after the file are statements; a database of the project is the project's.
fn sqlite(call: &Call<'_>, out: &mut Vec<Effect>) {
    const VALUES: &[&str] = &[
        "-cmd",
        "-init",
        "-separator",
        "-newline",
        "-nullvalue",
        "-maxsize",
        "-mmap",
        "-vfs",
        "-heap",
        "-c",
        "-s",
    ];
    let mut at = 1;
    let mut texts = Vec::new();
    let mut file: Option<Word> = None;
    let mut read_only = false;
    while let Some(word) = call.words.get(at) {
        let text = word.text.as_str();
        let name = text.strip_prefix('-').map(|_| text.trim_start_matches('-'));
        match name {
            Some("cmd" | "c" | "s") => {
                at += 1;
                texts.extend(call.words.get(at).cloned());
            }
            Some("init") => out.push(Effect::Deed(Deed::Code)),
            Some("readonly" | "safe") => read_only = true,
            Some("version" | "help") if call.words.len() == 2 => return,
            Some(_) if VALUES.contains(&text) => at += 1,
            Some(_) => {}
            None if file.is_none() => file = Some(word.clone()),
            None => texts.push(word.clone()),
        }
        at += 1;
    }
    let writes = texts.iter().any(|text| code::sqlite(text, out));
    if texts.is_empty() {
        out.push(Effect::Fed(code::Language::Sqlite));
    }
    if let Some(file) = file.filter(|word| word.text != ":memory:") {
        let act = if writes && !read_only {
            Act::Write
        } else {
            Act::Read
        };
        out.push(Effect::File(act, file));
    }
}

fn redis(call: &Call<'_>, out: &mut Vec<Effect>) {
    const READS: &[&str] = &[
        "ping",
        "get",
        "mget",
        "keys",
        "scan",
        "exists",
        "ttl",
        "pttl",
        "type",
        "info",
        "dbsize",
        "hget",
        "hgetall",
        "hkeys",
        "hlen",
        "lrange",
        "llen",
        "smembers",
        "scard",
        "zrange",
        "zcard",
        "strlen",
        "memory",
        "client-list",
        "time",
        "echo",
        "lastsave",
        "xlen",
        "xrange",
        "xinfo",
        "object",
        "randomkey",
        "hmget",
        "zscore",
        "sismember",
        "zrangebyscore",
        "getrange",
        "llen",
        "command",
        "latency",
    ];
    let Some(first) = call.operand(0) else {
        let open = !call.operands.is_empty() || !call.options.is_empty();
        if open {
            out.push(Effect::Fed(code::Language::Redis));
        }
        return;
    };
    let first = first.to_ascii_lowercase();
    if READS.contains(&first.as_str()) {
        return;
    }
    out.push(Effect::Deed(match first.as_str() {
        // Keys by their names, as a test writes them.
        "set" | "hset" | "lpush" | "rpush" | "sadd" | "zadd" | "incr" | "decr" | "expire"
        | "publish" | "subscribe" | "setex" | "append" | "xadd" => Deed::Network,
        _ => Deed::Destroys,
    }));
}

fn queries(call: &Call<'_>, out: &mut Vec<Effect>) {
    let texts: Vec<Word> = call
        .options
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "q" | "query" | "e" | "Q"))
        .filter_map(|(_, value)| value.clone())
        .collect();
    let asks = matches!(
        call.operand(0),
        Some("ls" | "show" | "get" | "version" | "status" | "members" | "node")
    );
    if texts.is_empty() && !asks {
        out.push(Effect::Deed(Deed::Destroys));
    }
    for text in texts {
        code::sql(&text, out);
    }
}

fn cluster(call: &Call<'_>, out: &mut Vec<Effect>) {
    if call
        .words
        .first()
        .is_some_and(|word| word.text.contains("pg_ctl"))
    {
        out.push(Effect::Deed(Deed::Opaque));
    }
}

/// Forward is ordinary, back is not.
fn migrations(call: &Call<'_>, out: &mut Vec<Effect>) {
    let back = call.words.iter().any(|word| {
        matches!(
            word.text.as_str(),
            "down"
                | "drop"
                | "reset"
                | "rollback"
                | "clean"
                | "redo"
                | "force"
                | "drop-all"
                | "dropAll"
                | "undo"
                | "delete"
                | "destroy"
                | "repair"
        )
    });
    out.push(Effect::Deed(if back {
        Deed::Destroys
    } else {
        Deed::Opaque
    }));
}

/// `SERVICE VERB`: verbs that only ask.
fn aws(call: &Call<'_>, out: &mut Vec<Effect>) {
    let (service, verb) = (call.operand(0).unwrap_or(""), call.operand(1).unwrap_or(""));
    let secret = matches!(
        verb,
        "get-secret-value"
            | "get-parameter"
            | "get-parameters"
            | "get-session-token"
            | "get-federation-token"
            | "get-login-password"
            | "get-authorization-token"
            | "get-password-data"
            | "create-access-key"
            | "assume-role"
            | "get-parameters-by-path"
            | "batch-get-secret-value"
            | "decrypt"
            | "export-credentials"
            | "get-credentials"
            | "get-token"
    );
    let asks = verb.starts_with("describe-")
        || verb.starts_with("list-")
        || verb.starts_with("get-")
        || verb.starts_with("head-")
        || verb.starts_with("filter-")
        || verb == "ls"
        || verb == "help"
        || verb == "wait"
        || verb == "tail";
    match (service, verb) {
        ("", _) if call.is_only(&["--version"]) => {}
        _ if secret => out.push(Effect::Deed(Deed::Secret)),
        ("configure", "list" | "list-profiles") => {}
        ("configure" | "sso", _) => out.push(Effect::Deed(Deed::Secret)),
        ("s3", "cp" | "sync" | "mv") => {
            let from = call.operands.get(2);
            let to = call.operands.get(3);
            let down = from.is_some_and(|word| word.text.starts_with("s3://"))
                && to.is_some_and(|word| !word.text.starts_with("s3://"));
            match to.filter(|_| down && verb != "mv" && !call.has(&["delete"])) {
                Some(to) => out.push(Effect::File(Act::Write, (*to).clone())),
                None => out.push(Effect::Deed(Deed::Uploads)),
            }
        }
        _ if asks => {
            out.push(Effect::Deed(Deed::Network));
            // `s3api get-object` writes a file of the name that comes last.
            if verb == "get-object" {
                out.extend(
                    call.operands
                        .last()
                        .map(|word| Effect::File(Act::Write, (*word).clone())),
                );
            }
        }
        _ => out.push(Effect::Deed(Deed::Deploys)),
    }
}

fn cloud(call: &Call<'_>, out: &mut Vec<Effect>) {
    const ASKS: &[&str] = &[
        "list",
        "ls",
        "describe",
        "show",
        "status",
        "version",
        "info",
        "logs",
        "get",
        "ps",
        "whoami",
        "help",
        "validate",
        "diff",
        "preview",
        "synth",
        "cat",
        "stat",
        "du",
        "lint",
        "package",
        "apps",
        "releases",
        "config-list",
        "current",
        "tail",
        "history",
        "build",
        "local",
        "doctor",
        "inventory-list",
        "read",
        "search",
    ];
    const SECRET: &[&str] = &[
        "print-access-token",
        "print-identity-token",
        "auth",
        "login",
        "logout",
        "get-access-token",
        "secrets",
        "secret",
        "keyvault",
        "env",
        "config",
        "credentials",
        "keys",
        "access-token",
        "auth:token",
        "config:get",
        "ssh",
    ];
    let words: Vec<&str> = call
        .operands
        .iter()
        .map(|word| word.text.as_str())
        .collect();
    let check = call.has(&[
        "check",
        "syntax-check",
        "list-tasks",
        "list-hosts",
        "dry-run",
        "dryrun",
    ]);
    if words.iter().any(|word| SECRET.contains(word))
        && (!words.contains(&"list") || words.contains(&"secrets"))
    {
        out.push(Effect::Deed(Deed::Secret));
    } else if words.is_empty()
        || check
        || words.iter().any(|word| ASKS.contains(word))
            && !words.iter().any(|word| {
                matches!(
                    *word,
                    "delete"
                        | "rm"
                        | "destroy"
                        | "remove"
                        | "deploy"
                        | "up"
                        | "cp"
                        | "rsync"
                        | "mv"
                )
            })
    {
        out.push(Effect::Deed(Deed::Network));
    } else if matches!(
        words.first(),
        Some(&"dev" | &"serve" | &"emulators:start" | &"local" | &"start")
    ) {
        out.push(Effect::Deed(Deed::Opaque));
    } else {
        out.push(Effect::Deed(Deed::Deploys));
    }
}
