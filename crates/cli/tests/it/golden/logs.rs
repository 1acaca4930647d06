//! Logs: one story a file, and the sealed policies beside it. `crates/core/tests/core/golden.rs`
//! and `crates/runtime/tests/golden.rs` replay every file; here each story is told again.

use checkrein_core::event::{self, Event};
use checkrein_core::ids::{EventSeq, SessionId};
use checkrein_runtime::replay;
use checkrein_store::{SqliteStore, Store};
use serde_json::Value;

use super::{
    in_repo, is_writing, newest, next, same, shape, stories, stories_of_models, stories_of_people,
    stories_of_the_library,
};
use crate::world::World;

pub(super) const FOLDER: &str = "crates/core/tests/golden";

/// A session as it was recorded.
pub(super) struct Told {
    log: Vec<String>,
    /// In the order in which they were sealed.
    policies: Vec<String>,
}

impl Told {
    /// Of the one store of a world.
    pub(super) fn of(world: &World, session: &str) -> Self {
        let store = SqliteStore::open_store_read_only(&world.store_folder()).unwrap();
        Self::in_store(&store, &SessionId::from(session))
    }

    pub(super) fn in_store(store: &dyn Store, session: &SessionId) -> Self {
        for through_cache in [false, true] {
            let replayed = replay::replay_session(store, session, through_cache).unwrap();
            assert_eq!(replayed.differs_at, None);
        }
        let mut told = Self {
            log: Vec::new(),
            policies: Vec::new(),
        };
        for row in store.events_after(session, EventSeq(0)).unwrap() {
            let event = event::decode_event(&row.payload).unwrap();
            if let Event::PolicySealed { policy, .. } | Event::PolicyRenewed { policy, .. } = event
            {
                told.policies
                    .push(line(store.read_blob(&policy).unwrap().unwrap()));
            }
            told.log.push(line(row.payload));
        }
        told
    }

    /// It is told as the newest golden log of this name has it.
    #[track_caller]
    fn holds(&self, name: &str) {
        let Some((_, file)) = newest(FOLDER, name, "jsonl") else {
            return self.is_missing(name);
        };
        let recorded = std::fs::read_to_string(&file).unwrap();
        let policies = std::fs::read_to_string(file.with_extension("policy.json")).unwrap();
        let log = shapes(recorded.lines());
        let sealed = shapes(policies.lines());
        let (today, sealed_today) = (shapes(&self.log), shapes(&self.policies));
        if is_writing() && (&log, &sealed) != (&today, &sealed_today) {
            return self.write(name);
        }
        same(&file, &log, &today);
        same(&file.with_extension("policy.json"), &sealed, &sealed_today);
    }

    #[track_caller]
    fn is_missing(&self, name: &str) {
        assert!(
            is_writing(),
            "no golden log is named {name}: {}=1 writes it",
            super::WRITE
        );
        self.write(name);
    }

    fn write(&self, name: &str) {
        let file = next(FOLDER, name, "jsonl");
        let text = |lines: &[String]| {
            lines
                .iter()
                .map(|line| format!("{line}\n"))
                .collect::<String>()
        };
        std::fs::write(file.with_extension("policy.json"), text(&self.policies)).unwrap();
        std::fs::write(file, text(&self.log)).unwrap();
    }
}

/// A line of a golden file is exactly what was recorded.
fn line(bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes).unwrap();
    assert!(!text.contains('\n'), "{text}");
    text
}

/// Whether the time is told, and how often, is chance.
fn shapes(lines: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
    let values = lines
        .into_iter()
        .map(|line| serde_json::from_str::<Value>(line.as_ref()).unwrap());
    values
        .filter(|value| value["input"]["input"] != "time_passed")
        .map(|value| shape::of(&value).to_string())
        .collect()
}

macro_rules! stories {
    ($($name:ident: $tell:expr;)*) => {
        $(#[test]
        fn $name() {
            $tell.holds(&stringify!($name).replace('_', "-"));
        })*

        /// A log that no story tells any more cannot rot unseen: core and runtime replay it.
        #[test]
        fn every_golden_log_has_its_story() {
            let stories = [$(stringify!($name).replace('_', "-"),)* MCP_PROXY.to_owned()];
            for entry in std::fs::read_dir(in_repo(FOLDER)).unwrap() {
                let file = entry.unwrap().file_name().into_string().unwrap();
                let name = file.split('.').next().unwrap();
                let of_core = name.starts_with(|c: char| c.is_ascii_digit()) || name == "README";
                assert!(of_core || stories.iter().any(|story| story == name), "{file}");
            }
        }
    };
}

stories! {
    hooks_of_claude_code: stories::hooks_of_claude_code();
    hooks_of_codex: stories::hooks_of_codex();
    middleware: stories::middleware();
    middleware_of_the_library: stories_of_the_library::middleware();
    host_verifiers: stories_of_the_library::host_verifiers();
    patches: stories::patches();
    sub_agents: stories::sub_agents();
    config_edited: stories::config_edited();
    config_broken: stories::config_broken();
    loops_and_caps: stories::loops_and_caps();
    two_entries: stories::two_entries();
    switched_off: stories::switched_off();
    wrapped_command: stories::wrapped_command();
    out_of_time: stories::out_of_time();
    interrupted: stories::interrupted();
    token_use: stories::token_use();
    schema_verifier: stories::schema_verifier();
    asked_of_people: stories_of_people::asked();
    reviewed_by_people: stories_of_people::reviewed();
    unanswered_by_people: stories_of_people::unanswered();
    judged: stories_of_models::judged();
    judged_and_wavering: stories_of_models::wavering();
    judged_in_shadow: stories_of_models::in_shadow();
    standing_tasks: stories_of_models::standing_tasks();
    vetoed: stories_of_models::vetoed();
    progress: stories_of_models::progress();
    autopilot: stories_of_models::autopilot();
}

const MCP_PROXY: &str = "mcp-proxy";

#[test]
fn mcp_proxy() {
    if let Some(told) = stories::mcp_proxy() {
        told.holds(MCP_PROXY);
    }
}

/// Where a reader of transcripts stood is in the log, and only its adapter reads it: today's goes
/// on from there, and counts nothing twice.
#[test]
fn recorded_transcript_cursors_are_still_read() {
    let (_, file) = newest(FOLDER, "token-use", "jsonl").unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let cursors = text.lines().filter_map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        let input = event["input"]["input"].as_object()?;
        let cursor = &input.values().next()?["tokens"]["cursor"];
        cursor.as_str().map(str::to_owned)
    });
    let adapter = checkrein_adapters::find_adapter("claude-code").unwrap();
    let mut count = 0;
    for cursor in cursors {
        let used = adapter.transcript_token_usage(b"", &cursor).unwrap();
        assert_eq!((used.output, used.input, &used.cursor), (0, 0, &cursor));
        count += 1;
    }
    assert!(count > 2, "{count}");
}
