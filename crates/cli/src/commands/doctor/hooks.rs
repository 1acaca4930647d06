//! The entries themselves: does the agent read the file, are ours in force, is something
//! missing, is something counted twice.

use std::collections::BTreeMap;

use checkrein_adapters::settings::{
    HookHandler, HookHandlerAction, SettingsFault, SettingsFaultKind, SettingsLostByFault,
};
use checkrein_adapters::{self as adapters};

use super::entry::Entry;
use super::finding::Finding;
use super::lines_of::{Step, steps};
use super::places::{Agent, Near, Scope, Settings};

/// Without this one nothing is checked.
const STOP: &str = "Stop";
/// Without this one nothing is gated.
const TOOL: &str = "PreToolUse";

/// One of our entries, and where it stands.
#[derive(Debug)]
pub(super) struct Installed<'a> {
    pub(super) settings: &'a Settings,
    pub(super) hook: &'a HookHandler,
    pub(super) entry: Entry,
    /// `file:line`.
    pub(super) place: String,
}

/// Our entries that the agent would call.
pub(super) fn installed<'a>(settings: &'a [Settings], near: &Near) -> Vec<Installed<'a>> {
    settings
        .iter()
        .flat_map(|file| file.reading.active_hooks().map(move |hook| (file, hook)))
        .filter_map(|(file, hook)| {
            let entry = Entry::of(hook)?;
            let path = format!(
                "hooks.{}[{}].hooks[{}]",
                hook.event, hook.group, hook.handler
            );
            Some(Installed {
                settings: file,
                hook,
                entry,
                place: file.at(&path, near),
            })
        })
        .collect()
}

/// Entries that call us and do something else too: neither counted nor tried out.
pub(super) fn mixed(agent: &Agent, settings: &[Settings], near: &Near) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in settings {
        for hook in file
            .reading
            .active_hooks()
            .filter(|hook| !hook.call.is_checkrein_hook())
        {
            let HookHandlerAction::Command { command, args } = &hook.call else {
                continue;
            };
            let mut words = std::iter::once(command).chain(args.iter().flatten());
            if !words.any(|word| word.contains("checkrein") && word.contains("hook ")) {
                continue;
            }
            let path = format!(
                "hooks.{}[{}].hooks[{}]",
                hook.event, hook.group, hook.handler
            );
            findings.push(
                Finding::warning(
                    agent.name,
                    "entry_mixed",
                    format!("the entry for {} calls checkrein and does more", hook.event),
                )
                .at(file.at(&path, near))
                .so("it is not counted as ours, and was not tried: what else it does is not ours to start")
                .mend(again(agent, file.scope)),
            );
        }
    }
    findings
}

/// How our entries of this scope are written anew.
pub(super) fn again(agent: &Agent, scope: Scope) -> String {
    let flag = match scope {
        Scope::User => " --user",
        Scope::Project => " --shared",
        Scope::Local => "",
    };
    // Codex has no file of one person in a repo.
    let flag = if agent.name == "codex" && scope == Scope::Project {
        ""
    } else {
        flag
    };
    format!("checkrein init --agent {}{flag}", agent.name)
}

/// What the reader says about every file, as far as it is our affair.
pub(super) fn readable(agent: &Agent, settings: &[Settings], near: &Near) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in settings {
        for fault in &file.reading.faults {
            findings.extend(of_fault(agent, file, fault, near));
        }
    }
    findings
}

fn of_fault(agent: &Agent, file: &Settings, fault: &SettingsFault, near: &Near) -> Option<Finding> {
    let ours = match fault.effect {
        SettingsLostByFault::Nothing => return None,
        SettingsLostByFault::Entry => touches_us(file, &fault.place),
        SettingsLostByFault::Hooks | SettingsLostByFault::File => {
            file.names_us() || fault.kind == SettingsFaultKind::HooksOff
        }
    };
    let check = word(fault.kind);
    let what = fault.what.clone();
    let finding = match (ours, fault.effect) {
        (true, _) => Finding::fault(agent.name, check, what),
        // Not our entry, but a person will want to know that their rules are not in force.
        (false, SettingsLostByFault::File) => Finding::warning(agent.name, check, what),
        (false, _) => return None,
    };
    let so = match fault.effect {
        SettingsLostByFault::Nothing | SettingsLostByFault::Entry => {
            "this entry is never called, and nothing is said"
        }
        SettingsLostByFault::Hooks => "no hook is called, and nothing is said",
        SettingsLostByFault::File => {
            "the whole file is dropped without a word: hooks, permission rules and all"
        }
    };
    let file_and_line = file.at(&fault.place, near);
    let path = match fault.place.strip_prefix("line ") {
        Some(_) => file_and_line,
        None => format!("{file_and_line} ({})", fault.place),
    };
    Some(finding.at(path).so(so).mend(fault.fix.clone()))
}

/// Whether what stands at this place, or around it, is an entry of ours.
fn touches_us(file: &Settings, place: &str) -> bool {
    let mut value = file.json();
    let mut group = 0;
    for step in steps(place) {
        let next = match &step {
            Step::Key(key) => value.get(key),
            Step::At(at) => value.get(at),
        };
        let Some(next) = next else { break };
        value = next;
        if matches!(step, Step::At(_)) {
            group += 1;
        }
        // A matcher is its group's.
        if group == 1 && place.ends_with(".matcher") {
            break;
        }
    }
    if value.is_null() {
        return file.names_us();
    }
    value.to_string().contains("checkrein")
}

fn word(kind: SettingsFaultKind) -> &'static str {
    match kind {
        SettingsFaultKind::Malformed | SettingsFaultKind::Comment => "settings_malformed",
        SettingsFaultKind::WrongShape | SettingsFaultKind::BadKey => "settings_shape",
        SettingsFaultKind::FlatHandler => "flat_handler",
        SettingsFaultKind::NoCommand => "no_command",
        SettingsFaultKind::UnknownType | SettingsFaultKind::Unsupported => "handler_type",
        SettingsFaultKind::BadTimeout | SettingsFaultKind::Clamped => "bad_timeout",
        SettingsFaultKind::BadMatcher => "bad_matcher",
        SettingsFaultKind::NeverMatches => "matcher_never_matches",
        SettingsFaultKind::UnknownEvent => "unknown_event",
        SettingsFaultKind::HooksOff => "hooks_disabled",
    }
}

/// Which events our entries cover.
pub(super) fn covered(agent: &Agent, installed: &[Installed<'_>], plugin: bool) -> Vec<Finding> {
    if installed.is_empty() {
        if plugin {
            return Vec::new();
        }
        return vec![
            Finding::warning(agent.name, "hooks", "no hook of ours is in force")
                .so(format!(
                    "{} works as if checkrein were not here",
                    agent.label
                ))
                .mend(again(agent, Scope::Local)),
        ];
    }
    let mut files: BTreeMap<String, usize> = BTreeMap::new();
    for one in installed {
        let file = one
            .place
            .rsplit_once(':')
            .map_or(&*one.place, |(file, _)| file);
        *files
            .entry(format!("{} ({file})", one.settings.scope.as_str()))
            .or_default() += 1;
    }
    let files: Vec<String> = files
        .into_iter()
        .map(|(file, count)| format!("{count} {file}"))
        .collect();
    let mut findings = vec![Finding::ok(
        agent.name,
        "hooks",
        format!("entries that are read: {}", files.join(", ")),
    )];
    let scope = installed
        .first()
        .map_or(Scope::Local, |one| one.settings.scope);
    let has = |event: &str| installed.iter().any(|one| one.hook.event == event);
    let mut missing: Vec<&str> = adapters::find_adapter(agent.name)
        .map_or(&[][..], |adapter| adapter.hook_events())
        .iter()
        .copied()
        .filter(|event| !has(event))
        .collect();
    for (event, so) in [
        (STOP, "no claim of done is ever checked"),
        (TOOL, "no command is gated and no loop is stopped"),
    ] {
        if missing.contains(&event) {
            missing.retain(|other| *other != event);
            findings.push(
                Finding::fault(agent.name, "event_missing", format!("no entry for {event}"))
                    .so(so)
                    .mend(again(agent, scope)),
            );
        }
    }
    if !missing.is_empty() {
        findings.push(
            Finding::warning(
                agent.name,
                "event_missing",
                format!("no entry for {}", missing.join(", ")),
            )
            .so("counters and endings know less than they could")
            .mend(again(agent, scope)),
        );
    }
    findings.extend(entries(agent, installed));
    findings
}

/// Mistakes in what our entries say.
fn entries(agent: &Agent, installed: &[Installed<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: BTreeMap<(&str, &str), &Installed<'_>> = BTreeMap::new();
    for one in installed {
        if one.entry.agent != agent.name {
            findings.push(
                Finding::fault(
                    agent.name,
                    "entry_agent",
                    format!(
                        "the entry for {} speaks for '{}'",
                        one.hook.event, one.entry.agent
                    ),
                )
                .at(&one.place)
                .so("it cannot read what this agent sends, and answers by its stance")
                .mend(format!("write `hook {}` there", agent.name)),
            );
        }
        if one.hook.detached && (one.hook.event == STOP || one.hook.event == TOOL) {
            findings.push(
                Finding::fault(
                    agent.name,
                    "entry_async",
                    format!("the entry for {} is async", one.hook.event),
                )
                .at(&one.place)
                .so("the agent does not wait for the answer")
                .mend("take \"async\" out"),
            );
        }
        let source = one.entry.source.as_deref().unwrap_or("hook");
        if let Some(first) = seen.insert((&one.hook.event, source), one)
            && first.settings.path != one.settings.path
        {
            findings.push(
                Finding::warning(
                    agent.name,
                    "counted_twice",
                    format!("two entries for {} have --source {source}", one.hook.event),
                )
                .at(&one.place)
                .so("stops and prompts are counted twice")
                .mend(format!(
                    "write --source {} here",
                    one.settings.scope.as_str()
                )),
            );
        }
    }
    findings
}
