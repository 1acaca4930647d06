//! Describes clients of databases and clouds. Reading is ordinary work; anything else may change
//! data or services that other people use.

use crate::effects::code;
use crate::effects::parsed_args::ParsedArgs;
use crate::effects::program_spec::{NonFileEffectKind, OptionMeaning, ProgramEffectSpec};
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::CommandWord;

pub(super) const SPECS: &[ProgramEffectSpec] = &[
    ProgramEffectSpec::new(&["psql", "pgcli"])
        .with_short_value_options("cdfhopUvFPRTL")
        .with_long_value_options(&[
            "command", "dbname", "file", "host", "output", "port", "username", "set", "variable",
            "log-file", "pset",
        ])
        .with_option_meanings(&[
            ("o", OptionMeaning::Writes),
            ("output", OptionMeaning::Writes),
            ("L", OptionMeaning::Writes),
            ("log-file", OptionMeaning::Writes),
        ])
        .with_extra_effects_fn(psql_effects),
    ProgramEffectSpec::new(&["mysql", "mariadb", "mycli"])
        .with_short_value_options("eDhPu")
        .with_long_value_options(&[
            "execute", "database", "host", "port", "user", "protocol", "socket",
        ])
        .with_option_meanings(&[
            ("tee", OptionMeaning::Writes),
            // The client runs its pager through a shell.
            ("pager", OptionMeaning::Command),
            (
                // SQL that runs on connecting, before what is judged.
                "init-command",
                OptionMeaning::ValueEffect(NonFileEffectKind::UnknownOptions),
            ),
            ("defaults-file", OptionMeaning::Value),
        ])
        .with_extra_effects_fn(mysql_effects),
    ProgramEffectSpec::new(&["sqlite3", "sqlite", "litecli", "duckdb"])
        .with_extra_effects_fn(sqlite_effects),
    ProgramEffectSpec::new(&["redis-cli", "valkey-cli", "keydb-cli"])
        .with_short_value_options("hpuan")
        .with_long_value_options(&["user", "pass"])
        .with_option_meanings(&[
            // A Lua script, which can run any command of the server.
            (
                "eval",
                OptionMeaning::ValueEffect(NonFileEffectKind::DestroysData),
            ),
            ("rdb", OptionMeaning::Writes),
        ])
        .with_extra_effects_fn(redis_effects),
    ProgramEffectSpec::new(&[
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
    .with_extra_effects_fn(database_client_effects),
    ProgramEffectSpec::program_spec_with_fixed_effects(
        &[
            "pg_dump",
            "pg_dumpall",
            "mysqldump",
            "mongodump",
            "pg_isready",
            "mysqladmin-ping",
            "mongoexport",
        ],
        &[NonFileEffectKind::Network],
    )
    .with_short_value_options("dhpUFfnt")
    .with_option_meanings(&[
        ("f", OptionMeaning::Writes),
        ("file", OptionMeaning::Writes),
        ("o", OptionMeaning::Writes),
        ("out", OptionMeaning::Writes),
        ("result-file", OptionMeaning::Writes),
        ("r", OptionMeaning::Writes),
    ]),
    ProgramEffectSpec::program_spec_with_fixed_effects(
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
        &[NonFileEffectKind::DestroysData],
    ),
    ProgramEffectSpec::new(&[
        "createdb",
        "pg_ctl",
        "pg_ctlcluster",
        "pg_lsclusters",
        "pg_config",
        "vacuumdb",
        "reindexdb",
        "pgbench",
    ])
    .with_extra_effects_fn(postgres_admin_tool_effects),
    ProgramEffectSpec::new(&[
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
    .with_extra_effects_fn(migration_tool_effects),
    ProgramEffectSpec::new(&["aws"])
        .with_short_value_options("")
        .with_long_value_options(&["region", "profile", "output", "query", "endpoint-url"])
        .with_extra_effects_fn(aws_effects),
    ProgramEffectSpec::new(&[
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
    .with_extra_effects_fn(cloud_cli_effects),
    ProgramEffectSpec::new(&["terraform", "tofu", "terragrunt", "opentofu"])
        .with_long_value_options(&["chdir"])
        .with_single_dash_long_options()
        .with_option_meanings(&[("chdir", OptionMeaning::WorkingDir)])
        .with_subcommands(&[
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["init", "get", "providers"],
                &[NonFileEffectKind::Installs],
            )
            .with_single_dash_long_options()
            .with_option_meanings(&[("plugin-dir", OptionMeaning::Value)]),
            ProgramEffectSpec::program_spec_with_fixed_effects(
                &["plan"],
                &[NonFileEffectKind::Opaque],
            )
            .with_single_dash_long_options()
            .with_long_value_options(&["var", "target", "replace", "parallelism"])
            .with_option_meanings(&[
                ("out", OptionMeaning::Writes),
                ("var-file", OptionMeaning::Reads),
            ]),
            ProgramEffectSpec::new(&[
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
            .with_single_dash_long_options(),
            ProgramEffectSpec::new(&["state", "workspace"]).with_subcommands(&[
                ProgramEffectSpec::new(&["list", "show", "pull", "select", "new"])
                    .with_single_dash_long_options(),
                ProgramEffectSpec::program_spec_with_fixed_effects(
                    &["rm", "mv", "push", "replace-provider", "delete"],
                    &[NonFileEffectKind::Deploys],
                )
                .with_single_dash_long_options(),
            ]),
            ProgramEffectSpec::program_spec_with_fixed_effects(
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
                &[NonFileEffectKind::Deploys],
            )
            .with_single_dash_long_options(),
        ]),
];

/// Returns the values of these options, which are SQL or names of files.
fn values_of_sql_options(call: &ParsedArgs<'_>, names: &[&'static str]) -> Vec<CommandWord> {
    call.options
        .iter()
        .filter(|(name, _)| names.contains(&name.as_str()))
        .filter_map(|(_, value)| value.clone())
        .collect()
}

fn psql_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.push(CommandEffect::Kind(NonFileEffectKind::Network));
    let mut texts = values_of_sql_options(call, &["c", "command"]);
    for file in values_of_sql_options(call, &["f", "file"]) {
        out.push(CommandEffect::File(FileAccess::Read, file));
        // The statements of the file are not read.
        out.push(CommandEffect::Kind(NonFileEffectKind::DestroysData));
    }
    let shows = call.has_option(&["l", "list", "f", "file"])
        || call.only_argument_is_one_of(&["-V", "--version"]);
    // Without a statement in its words the client reads them from its input.
    if texts.is_empty() && !shows {
        out.push(CommandEffect::StdinCode(code::CodeLanguage::Sql));
    }
    for text in texts.drain(..) {
        code::sql_effects(&text, out);
    }
}

fn mysql_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    out.push(CommandEffect::Kind(NonFileEffectKind::Network));
    let texts = values_of_sql_options(call, &["e", "execute"]);
    if texts.is_empty() && !call.only_argument_is_one_of(&["-V", "--version"]) {
        out.push(CommandEffect::StdinCode(code::CodeLanguage::Sql));
    }
    for text in texts {
        code::sql_effects(&text, out);
    }
}

/// Judges `sqlite3` and DuckDB. The first operand is the database file, the others are statements.
fn sqlite_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
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
    let mut file: Option<CommandWord> = None;
    let mut read_only = false;
    while let Some(word) = call.words.get(at) {
        let text = word.text.as_str();
        let name = text.strip_prefix('-').map(|_| text.trim_start_matches('-'));
        match name {
            Some("cmd" | "c" | "s") => {
                at += 1;
                texts.extend(call.words.get(at).cloned());
            }
            // A file of statements and dot commands.
            Some("init") => out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode)),
            Some("readonly" | "safe") => read_only = true,
            Some("version" | "help") if call.words.len() == 2 => return,
            Some(_) if VALUES.contains(&text) => at += 1,
            Some(_) => {}
            None if file.is_none() => file = Some(word.clone()),
            None => texts.push(word.clone()),
        }
        at += 1;
    }
    // A file that is only queried counts as read, which is ordinary outside of the project, too.
    let writes = texts
        .iter()
        .any(|text| code::sqlite_text_effects(text, out));
    if texts.is_empty() {
        out.push(CommandEffect::StdinCode(code::CodeLanguage::Sqlite));
    }
    if let Some(file) = file.filter(|word| word.text != ":memory:") {
        let act = if writes && !read_only {
            FileAccess::Write
        } else {
            FileAccess::Read
        };
        out.push(CommandEffect::File(act, file));
    }
}

fn redis_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
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
    // Without a command `redis-cli` reads commands from its input.
    let Some(first) = call.literal_operand(0) else {
        let open = !call.operands.is_empty() || !call.options.is_empty();
        if open {
            out.push(CommandEffect::StdinCode(code::CodeLanguage::Redis));
        }
        return;
    };
    let first = first.to_ascii_lowercase();
    if READS.contains(&first.as_str()) {
        return;
    }
    out.push(CommandEffect::Kind(match first.as_str() {
        // Writes to single keys are what tests do. `FLUSHALL`, `DEL` or `CONFIG` are not.
        "set" | "hset" | "lpush" | "rpush" | "sadd" | "zadd" | "incr" | "decr" | "expire"
        | "publish" | "subscribe" | "setex" | "append" | "xadd" => NonFileEffectKind::Network,
        _ => NonFileEffectKind::DestroysData,
    }));
}

fn database_client_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // Without a query in the words such a client reads statements from its input.
    let texts: Vec<CommandWord> = call
        .options
        .iter()
        .filter(|(name, _)| matches!(name.as_str(), "q" | "query" | "e" | "Q"))
        .filter_map(|(_, value)| value.clone())
        .collect();
    let asks = matches!(
        call.literal_operand(0),
        Some("ls" | "show" | "get" | "version" | "status" | "members" | "node")
    );
    if texts.is_empty() && !asks {
        out.push(CommandEffect::Kind(NonFileEffectKind::DestroysData));
    }
    for text in texts {
        code::sql_effects(&text, out);
    }
}

fn postgres_admin_tool_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // `pg_ctl` starts and stops servers of the project; the others create or inspect.
    if call
        .words
        .first()
        .is_some_and(|word| word.text.contains("pg_ctl"))
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
    }
}

/// Judges migration tools: migrating forward is ordinary work, back or down destroys data.
fn migration_tool_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    // The word may stand at any place, because the tools nest their sub-commands differently.
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
    out.push(CommandEffect::Kind(if back {
        NonFileEffectKind::DestroysData
    } else {
        NonFileEffectKind::Opaque
    }));
}

/// Judges `aws SERVICE VERB`: verbs that only query, that return secrets, and the rest.
fn aws_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
    let (service, verb) = (
        call.literal_operand(0).unwrap_or(""),
        call.literal_operand(1).unwrap_or(""),
    );
    // These begin like queries, so they are looked at first.
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
    // AWS names its verbs consistently: these prefixes belong to queries.
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
        ("", _) if call.only_argument_is_one_of(&["--version"]) => {}
        _ if secret => out.push(CommandEffect::Kind(NonFileEffectKind::ExposesSecret)),
        ("configure", "list" | "list-profiles") => {}
        ("configure" | "sso", _) => out.push(CommandEffect::Kind(NonFileEffectKind::ExposesSecret)),
        ("s3", "cp" | "sync" | "mv") => {
            // Only a plain download is ordinary: `mv` and `--delete` remove something on one side.
            let from = call.operands.get(2);
            let to = call.operands.get(3);
            let down = from.is_some_and(|word| word.text.starts_with("s3://"))
                && to.is_some_and(|word| !word.text.starts_with("s3://"));
            match to.filter(|_| down && verb != "mv" && !call.has_option(&["delete"])) {
                Some(to) => out.push(CommandEffect::File(FileAccess::Write, (*to).clone())),
                None => out.push(CommandEffect::Kind(NonFileEffectKind::Uploads)),
            }
        }
        _ if asks => {
            out.push(CommandEffect::Kind(NonFileEffectKind::Network));
            // `s3api get-object` writes a file of the name that comes last.
            if verb == "get-object" {
                out.extend(
                    call.operands
                        .last()
                        .map(|word| CommandEffect::File(FileAccess::Write, (*word).clone())),
                );
            }
        }
        _ => out.push(CommandEffect::Kind(NonFileEffectKind::Deploys)),
    }
}

fn cloud_cli_effects(call: &ParsedArgs<'_>, out: &mut Vec<CommandEffect>) {
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
    // These only check or list; Ansible calls its dry run `--check`.
    let check = call.has_option(&[
        "check",
        "syntax-check",
        "list-tasks",
        "list-hosts",
        "dry-run",
        "dryrun",
    ]);
    // The services differ too much for rows: single words decide. A secret is looked for first, as
    // `get` and `list` also stand before secrets.
    if words.iter().any(|word| SECRET.contains(word))
        && (!words.contains(&"list") || words.contains(&"secrets"))
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::ExposesSecret));
    } else if words.is_empty()
        || check
        || words.iter().any(|word| ASKS.contains(word))
            // A changing word outweighs a query, which may only be the name of something.
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
        out.push(CommandEffect::Kind(NonFileEffectKind::Network));
    } else if matches!(
        words.first(),
        Some(&"dev" | &"serve" | &"emulators:start" | &"local" | &"start")
    ) {
        out.push(CommandEffect::Kind(NonFileEffectKind::Opaque));
    } else {
        out.push(CommandEffect::Kind(NonFileEffectKind::Deploys));
    }
}
