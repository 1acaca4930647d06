//! Finds risks that lie in the words of a command and not in its program's row: a task runner that
//! is told to run another program, and text that is sent to another machine.

use super::parsed_args::ParsedArgs;
use super::program_spec::ProgramEffectSpec;
use super::{CodeLanguage, CommandEffect, NonFileEffectKind, programs};
use crate::shell::{CommandWord, WordKnowledge};

/// Adds the effects of what a runner of project programs is told to run: `hatch run rm x`.
pub(super) fn add_task_runner_effects(
    program: &str,
    call: &ParsedArgs<'_>,
    out: &mut Vec<CommandEffect>,
) {
    // Tasks of Rails, Laravel, Prisma, Ecto, Alembic and Django that drop or roll back a database.
    const DESTROYS: &[&str] = &[
        "db:drop",
        "db:reset",
        "db:purge",
        "db:wipe",
        "schema:drop",
        "migrate:fresh",
        "migrate:reset",
        "migrate:rollback",
        "--force-reset",
        "ecto.drop",
        "ecto.reset",
        "down-to",
        "downgrade",
        "flush",
        "reset_db",
        "yank",
    ];
    // Runners that take a program text as an argument or on their standard input.
    const CODE: &[&str] = &[
        "rake", "mix", "ghc", "stack", "clj", "kotlin", "tsx", "ts-node", "zx", "bun", "deno", "v",
        "ocaml", "memray", "nx", "rails", "m4", "prove", "pnpm", "tcc", "yarn",
    ];
    let coder = CODE.contains(&program);
    let text = |word: &CommandWord| word.text.clone();
    let words: Vec<String> = call.words.iter().skip(1).map(text).collect();
    let any = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let file = |effect: &CommandEffect| matches!(effect, CommandEffect::RunsFile(_));
    let opaque = out.contains(&CommandEffect::Kind(NonFileEffectKind::Opaque));
    if (opaque || out.iter().any(file)) && any(DESTROYS) || call.command_name() == "yank" {
        out.push(CommandEffect::Kind(NonFileEffectKind::DestroysData));
    }
    if !coder && !opaque {
        return;
    }
    // Uninstalling the hook manager removes the Git hooks that check each commit.
    let checks = matches!(program, "husky" | "pre-commit" | "lefthook");
    if checks && call.literal_operand(0) == Some("uninstall") {
        out.push(CommandEffect::Kind(NonFileEffectKind::SkipsChecks));
    }
    if call.literal_operand(0) == Some("publish") {
        out.push(CommandEffect::Kind(NonFileEffectKind::Publishes));
    }
    let flagged = words.iter().any(|word| {
        [
            "-e",
            "-c",
            "--eval",
            "--execute",
            "--exec",
            "--command",
            "--run_under",
            "-run",
        ]
        .iter()
        .any(|flag| word == flag || word.starts_with(&format!("{flag}=")))
    });
    // `rails runner CODE` and `mvn exec:exec` take their code from the words.
    let told = matches!(
        call.literal_operand(0),
        Some("runner" | "console" | "exec:exec")
    ) && call.command_name() != "php";
    if coder
        && (flagged
            || words
                .iter()
                .any(|word| word == "-" || word.starts_with("data:")))
        || told
        || words.iter().any(|word| word.starts_with("--run_under"))
    {
        out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    // Without a file these programs read code from standard input.
    if coder && call.operands.is_empty() {
        out.push(CommandEffect::StdinCode(CodeLanguage::Unread));
    }
    // What runs in a container is judged there.
    if out
        .iter()
        .any(|effect| matches!(effect, CommandEffect::ContainerCommand(_)))
    {
        return;
    }
    for operand in call.operands.iter().take(3) {
        // Names of programs that are far more often names of tasks.
        const TASKS: &[&str] = &[
            "format", "install", "test", "reset", "watch", "link", "start",
        ];
        let name = operand.as_literal().filter(|name| !TASKS.contains(name));
        let known = name.and_then(programs::find_program_spec);
        if known.is_some_and(|row| !row.effects.contains(&NonFileEffectKind::Opaque)) {
            let before = |word: &&CommandWord| !std::ptr::eq(*word, *operand);
            let words = call.words.iter().skip_while(before).cloned().collect();
            out.push(CommandEffect::ProjectTool(words));
        }
    }
}

/// Returns the host of a URL, without its port.
fn url_host(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    rest.split(['/', '?', '#', ':']).next()
}

/// Whether a text holds a variable that is named like a secret, and that does not belong to the
/// service which the text goes to: `$GITHUB_TOKEN` belongs to github.com.
fn references_secret_variable(text: &str, hosts: &[&str]) -> bool {
    text.split('$').skip(1).any(|rest| {
        let rest = rest.trim_start_matches('{');
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let name = rest
            .get(..end.unwrap_or(rest.len()))
            .unwrap_or("")
            .to_ascii_uppercase();
        let service = name.split('_').next().unwrap_or("").to_ascii_lowercase();
        let own = |host: &&str| {
            ["com", "org", "io", "ai"].iter().any(|end| {
                let home = format!("{service}.{end}");
                *host == home || host.ends_with(&format!(".{home}"))
            })
        };
        // Every host must be the service itself: with a second one the secret may go there.
        if !hosts.is_empty() && hosts.iter().all(own) {
            return false;
        }
        [
            "TOKEN",
            "SECRET",
            "PASSWORD",
            "PASSWD",
            "API_KEY",
            "ACCESS_KEY",
            "PRIVATE_KEY",
        ]
        .iter()
        .any(|secret| name.contains(secret))
    })
}

/// Adds what goes to another machine: text known only at run time, variables named like secrets.
pub(super) fn add_upload_effects(
    row: &ProgramEffectSpec,
    call: &ParsedArgs<'_>,
    out: &mut Vec<CommandEffect>,
) {
    // A host name that is looked up reaches the name server of its domain: `dig $(cmd).example.com`
    // hands out what the command printed.
    let asks = matches!(
        call.command_name(),
        "dig" | "nslookup" | "host" | "drill" | "kdig" | "whois" | "ping" | "getent"
    );
    let made = |word: &CommandWord| {
        word.knowledge == WordKnowledge::SingleWord
            && word.text.len() > 1
            && (!word.text.starts_with('$') || word.text.starts_with("$("))
    };
    if asks && call.words.iter().skip(1).any(made) {
        out.push(CommandEffect::Kind(NonFileEffectKind::Uploads));
    }
    // What stays on this machine is not sent to anybody.
    let near =
        |word: &CommandWord| word.text.contains("localhost") || word.text.contains("127.0.0.1");
    if row.effects.contains(&NonFileEffectKind::Network) && !call.words.iter().any(near) {
        let open = call
            .words
            .iter()
            .skip(1)
            .filter(|word| word.knowledge != WordKnowledge::Literal);
        let hosts: Vec<&str> = call
            .words
            .iter()
            .filter_map(|word| url_host(&word.text))
            .collect();
        if open
            .clone()
            .any(|word| references_secret_variable(&word.text, &hosts))
        {
            out.push(CommandEffect::Kind(NonFileEffectKind::ExposesSecret));
        }
        // For a sub-command only the URL is sent (`git clone URL`), for a program any word may be.
        let whole = programs::find_program_spec(call.command_name())
            .is_some_and(|own| std::ptr::eq(own, row));
        let dumps = |text: &str| {
            ["$(env", "$(printenv", "$(export", "`env", "`printenv"]
                .iter()
                .any(|dump| text.contains(dump))
        };
        // A URL counts if it stands in the word itself, not inside of a substitution's command.
        let names_place = |text: &str| {
            let (head, rest) = text.split_at(text.find(['`', '(']).unwrap_or(text.len()));
            let tail = rest.rfind(['`', ')']).and_then(|end| rest.get(end..));
            head.contains("://") || tail.is_some_and(|tail| tail.contains("://"))
        };
        let open = open.filter(|word| whole || names_place(&word.text) || dumps(&word.text));
        out.extend(open.map(|word| CommandEffect::Sends(word.clone())));
    }
}
