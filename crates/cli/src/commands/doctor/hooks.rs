//! Checks the entries themselves: whether the agent reads the file, whether ours are in force, and
//! whether anything is missing or counted twice.

use std::collections::BTreeMap;

use checkrein_adapters::settings::{
    HookHandler, HookHandlerInvocation, SettingsFault, SettingsFaultImpact, SettingsFaultKind,
};
use checkrein_adapters::{self as adapters};

use super::agents::{InspectableAgent, PathShortener, SettingsFile, SettingsScope};
use super::finding::DoctorFinding;
use super::hook_entry::ParsedCheckreinHookEntry;
use super::json_location::{JsonPathStep, parse_json_path};

/// The event without which nothing is checked.
const STOP_EVENT: &str = "Stop";
/// The event without which nothing is gated.
const TOOL_EVENT: &str = "PreToolUse";

/// One of our entries, and where it stands.
#[derive(Debug)]
pub(super) struct InstalledHook<'a> {
    pub(super) settings: &'a SettingsFile,
    pub(super) hook: &'a HookHandler,
    pub(super) entry: ParsedCheckreinHookEntry,
    /// `file:line`.
    pub(super) place: String,
}

/// Returns our entries that the agent would call.
pub(super) fn active_checkrein_hooks<'a>(
    settings: &'a [SettingsFile],
    near: &PathShortener,
) -> Vec<InstalledHook<'a>> {
    settings
        .iter()
        .flat_map(|file| file.reading.active_hooks().map(move |hook| (file, hook)))
        .filter_map(|(file, hook)| {
            let entry = ParsedCheckreinHookEntry::checkrein_entry_from_hook(hook)?;
            let path = format!(
                "hooks.{}[{}].hooks[{}]",
                hook.event, hook.group, hook.handler
            );
            Some(InstalledHook {
                settings: file,
                hook,
                entry,
                place: file.format_file_line_reference(&path, near),
            })
        })
        .collect()
}

/// Reports entries that call us and do something else too: they are neither counted nor tried.
pub(super) fn compound_hook_command_findings(
    agent: &InspectableAgent,
    settings: &[SettingsFile],
    near: &PathShortener,
) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for file in settings {
        for hook in file
            .reading
            .active_hooks()
            .filter(|hook| !hook.call.is_checkrein_hook())
        {
            let HookHandlerInvocation::Command { command, args } = &hook.call else {
                continue;
            };
            // The words may stand in the command line or in `args`.
            let mut words = std::iter::once(command).chain(args.iter().flatten());
            if !words.any(|word| word.contains("checkrein") && word.contains("hook ")) {
                continue;
            }
            let path = format!(
                "hooks.{}[{}].hooks[{}]",
                hook.event, hook.group, hook.handler
            );
            findings.push(
                DoctorFinding::warning_finding(
                    agent.name,
                    "entry_mixed",
                    format!("the entry for {} calls checkrein and does more", hook.event),
                )
                .with_finding_place(file.format_file_line_reference(&path, near))
                .with_finding_consequence("it is not counted as ours, and was not tried: what else it does is not ours to start")
                .with_fix(reinstall_hooks_command(agent, file.scope)),
            );
        }
    }
    findings
}

/// Returns the command that writes our entries of this scope anew.
pub(super) fn reinstall_hooks_command(agent: &InspectableAgent, scope: SettingsScope) -> String {
    let flag = match scope {
        SettingsScope::User => " --user",
        SettingsScope::Project => " --shared",
        SettingsScope::Local => "",
    };
    // Codex has no file for one person in a repo.
    let flag = if agent.name == "codex" && scope == SettingsScope::Project {
        ""
    } else {
        flag
    };
    format!("checkrein init --agent {}{flag}", agent.name)
}

/// Reports what the parser found in every file, as far as it concerns us.
pub(super) fn collect_settings_fault_findings(
    agent: &InspectableAgent,
    settings: &[SettingsFile],
    near: &PathShortener,
) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for file in settings {
        for fault in &file.reading.faults {
            findings.extend(settings_fault_finding(agent, file, fault, near));
        }
    }
    findings
}

fn settings_fault_finding(
    agent: &InspectableAgent,
    file: &SettingsFile,
    fault: &SettingsFault,
    near: &PathShortener,
) -> Option<DoctorFinding> {
    // A fault that costs the whole file is ours if the file is, or if it switches all hooks
    // off.
    let ours = match fault.effect {
        SettingsFaultImpact::Nothing => return None,
        SettingsFaultImpact::Entry => is_json_path_at_checkrein_hook(file, &fault.place),
        SettingsFaultImpact::Hooks | SettingsFaultImpact::File => {
            file.settings_file_mentions_checkrein() || fault.kind == SettingsFaultKind::HooksOff
        }
    };
    let check = settings_fault_name(fault.kind);
    let what = fault.what.clone();
    let finding = match (ours, fault.effect) {
        (true, _) => DoctorFinding::new_doctor_fault_finding(agent.name, check, what),
        // Not our entry, but a person will want to know that their rules are not in force.
        (false, SettingsFaultImpact::File) => {
            DoctorFinding::warning_finding(agent.name, check, what)
        }
        (false, _) => return None,
    };
    let so = match fault.effect {
        SettingsFaultImpact::Nothing | SettingsFaultImpact::Entry => {
            "this entry is never called, and nothing is said"
        }
        SettingsFaultImpact::Hooks => "no hook is called, and nothing is said",
        SettingsFaultImpact::File => {
            "the whole file is dropped without a word: hooks, permission rules and all"
        }
    };
    let file_and_line = file.format_file_line_reference(&fault.place, near);
    let path = match fault.place.strip_prefix("line ") {
        Some(_) => file_and_line,
        None => format!("{file_and_line} ({})", fault.place),
    };
    Some(
        finding
            .with_finding_place(path)
            .with_finding_consequence(so)
            .with_fix(fault.fix.clone()),
    )
}

/// Returns whether an entry of ours stands at this place or around it.
fn is_json_path_at_checkrein_hook(file: &SettingsFile, place: &str) -> bool {
    let mut value = file.parsed_settings();
    let mut group = 0;
    for step in parse_json_path(place) {
        let next = match &step {
            JsonPathStep::Key(key) => value.get(key),
            JsonPathStep::Index(at) => value.get(at),
        };
        // The place may name a field that is missing; what is around it counts then.
        let Some(next) = next else { break };
        value = next;
        if matches!(step, JsonPathStep::Index(_)) {
            group += 1;
        }
        // A matcher belongs to its whole group.
        if group == 1 && place.ends_with(".matcher") {
            break;
        }
    }
    // A file that is no JSON has no places: its text has to do.
    if value.is_null() {
        return file.settings_file_mentions_checkrein();
    }
    value.to_string().contains("checkrein")
}

fn settings_fault_name(kind: SettingsFaultKind) -> &'static str {
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

/// Reports which events our entries cover.
pub(super) fn hook_entry_coverage_findings(
    agent: &InspectableAgent,
    installed: &[InstalledHook<'_>],
    plugin: bool,
) -> Vec<DoctorFinding> {
    if installed.is_empty() {
        // A plug-in covers them, and has findings of its own.
        if plugin {
            return Vec::new();
        }
        return vec![
            DoctorFinding::warning_finding(agent.name, "hooks", "no hook of ours is in force")
                .with_finding_consequence(format!(
                    "{} works as if checkrein were not here",
                    agent.label
                ))
                .with_fix(reinstall_hooks_command(agent, SettingsScope::Local)),
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
    let mut findings = vec![DoctorFinding::ok_finding(
        agent.name,
        "hooks",
        format!("entries that are read: {}", files.join(", ")),
    )];
    let scope = installed
        .first()
        .map_or(SettingsScope::Local, |one| one.settings.scope);
    let has = |event: &str| installed.iter().any(|one| one.hook.event == event);
    let mut missing: Vec<&str> = adapters::find_adapter(agent.name)
        .map_or(&[][..], |adapter| adapter.hook_events())
        .iter()
        .copied()
        .filter(|event| !has(event))
        .collect();
    // Each of these two costs a whole promise, so it is a fault of its own and not one of a
    // list.
    for (event, so) in [
        (STOP_EVENT, "no claim of done is ever checked"),
        (TOOL_EVENT, "no command is gated and no loop is stopped"),
    ] {
        if missing.contains(&event) {
            missing.retain(|other| *other != event);
            findings.push(
                DoctorFinding::new_doctor_fault_finding(
                    agent.name,
                    "event_missing",
                    format!("no entry for {event}"),
                )
                .with_finding_consequence(so)
                .with_fix(reinstall_hooks_command(agent, scope)),
            );
        }
    }
    if !missing.is_empty() {
        findings.push(
            DoctorFinding::warning_finding(
                agent.name,
                "event_missing",
                format!("no entry for {}", missing.join(", ")),
            )
            .with_finding_consequence("counters and endings know less than they could")
            .with_fix(reinstall_hooks_command(agent, scope)),
        );
    }
    findings.extend(check_checkrein_hook_entries(agent, installed));
    findings
}

/// Reports mistakes in our entries.
fn check_checkrein_hook_entries(
    agent: &InspectableAgent,
    installed: &[InstalledHook<'_>],
) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let mut seen: BTreeMap<(&str, &str), &InstalledHook<'_>> = BTreeMap::new();
    for one in installed {
        if one.entry.agent != agent.name {
            findings.push(
                DoctorFinding::new_doctor_fault_finding(
                    agent.name,
                    "entry_agent",
                    format!(
                        "the entry for {} speaks for '{}'",
                        one.hook.event, one.entry.agent
                    ),
                )
                .with_finding_place(&one.place)
                .with_finding_consequence(
                    "it cannot read what this agent sends, and answers by its stance",
                )
                .with_fix(format!("write `hook {}` there", agent.name)),
            );
        }
        // An agent does not wait for an async hook, so it can decide nothing.
        if one.hook.detached && (one.hook.event == STOP_EVENT || one.hook.event == TOOL_EVENT) {
            findings.push(
                DoctorFinding::new_doctor_fault_finding(
                    agent.name,
                    "entry_async",
                    format!("the entry for {} is async", one.hook.event),
                )
                .with_finding_place(&one.place)
                .with_finding_consequence("the agent does not wait for the answer")
                .with_fix("take \"async\" out"),
            );
        }
        // `--source` is how one event that two entries deliver is known as one. Two of the same
        // source count twice.
        let source = one.entry.source.as_deref().unwrap_or("hook");
        if let Some(first) = seen.insert((&one.hook.event, source), one)
            && first.settings.path != one.settings.path
        {
            findings.push(
                DoctorFinding::warning_finding(
                    agent.name,
                    "counted_twice",
                    format!("two entries for {} have --source {source}", one.hook.event),
                )
                .with_finding_place(&one.place)
                .with_finding_consequence("stops and prompts are counted twice")
                .with_fix(format!(
                    "write --source {} here",
                    one.settings.scope.as_str()
                )),
            );
        }
    }
    findings
}
