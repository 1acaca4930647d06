//! `doctor` names every planted fault with its mend, and says nothing of the kind where there is
//! none. The canary is played with the real agents by `cargo xtask agents --case doctor`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use checkrein_adapters::{self as adapters, codex_trust};
use serde_json::{Value, json};

use crate::agent::Agent;
#[cfg(unix)]
use crate::terminal::Terminal;
use crate::world::{Said, World};

const CLAUDE: &str = ".claude/settings.local.json";
const CODEX: &str = ".codex/hooks.json";
/// Seconds that healthy entries wait.
const TIMEOUT: u64 = 120;

/// A repo with a check, in which both agents' hooks are as they should be, and no agent on
/// the PATH.
pub(crate) struct Healthy {
    world: World,
}

impl Healthy {
    pub(crate) fn new() -> Self {
        let world = World::with_check("true");
        let healthy = Self { world };
        healthy.tools();
        healthy.settings(CLAUDE, &healthy.claude());
        healthy.settings(CODEX, &healthy.codex());
        healthy.trust();
        healthy
    }

    /// Programs that checks and doctor need, by their own names, and no others.
    fn tools(&self) {
        let folder = self.tools_folder();
        std::fs::create_dir(&folder).unwrap();
        for name in ["sh", "bash", "git", "true", "sleep", "cat"] {
            let path = std::env::var_os("PATH").unwrap();
            let found = std::env::split_paths(&path)
                .map(|folder| folder.join(name))
                .find(|file| file.is_file());
            if let Some(found) = found {
                link(&found, &folder.join(name));
            }
        }
    }

    fn tools_folder(&self) -> PathBuf {
        self.world.outside("tools")
    }

    fn home(&self) -> PathBuf {
        self.world.outside("home")
    }

    fn bin() -> &'static str {
        env!("CARGO_BIN_EXE_checkrein")
    }

    fn settings(&self, file: &str, json: &Value) {
        let text = serde_json::to_string_pretty(json).unwrap();
        self.world.write(file, &text);
    }

    fn claude(&self) -> Value {
        entries("claude-code", |event| {
            let mut handler = json!({
                "type": "command", "command": Self::bin(), "timeout": TIMEOUT,
                "args": ["hook", "claude-code", "--source", "local", "--deadline", TIMEOUT.to_string()],
            });
            if event == "PreToolUse" {
                handler["onFailure"] = json!("block");
            }
            handler
        })
    }

    fn codex(&self) -> Value {
        entries("codex", |event| {
            let seconds = if event == "SessionEnd" { 3 } else { TIMEOUT };
            let command = format!(
                "'{}' hook codex --source project --deadline {seconds}",
                Self::bin()
            );
            json!({ "type": "command", "command": command, "timeout": seconds })
        })
    }

    fn codex_config(&self) -> PathBuf {
        self.home().join(".codex/config.toml")
    }

    /// Codex trusts the repo and its hooks as they are now.
    fn trust(&self) {
        let root = self.world.root().canonicalize().unwrap();
        let file = root.join(CODEX);
        let reading = adapters::find_adapter("codex")
            .unwrap()
            .parse_hook_settings(&std::fs::read(&file).unwrap())
            .unwrap();
        let mut config = format!(
            "[projects.{}]\ntrust_level = \"trusted\"\n",
            json!(root.display().to_string())
        );
        for hook in &reading.hooks {
            let key = codex_trust::codex_hook_trust_key(&file.display().to_string(), hook).unwrap();
            let hash = codex_trust::codex_hook_trust_hash(hook).unwrap();
            config.push_str(&format!(
                "[hooks.state.{}]\ntrusted_hash = \"{hash}\"\n",
                json!(key)
            ));
        }
        self.put(&self.codex_config(), &config);
    }

    fn put(&self, file: &Path, text: &str) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    pub(crate) fn doctor(&self, more: &[&str], env: &[(&str, &str)]) -> Said {
        let mut args = vec!["doctor"];
        args.extend(more);
        let output = self
            .world
            .checkrein(&args)
            .env("PATH", self.tools_folder())
            .env("SHELL", self.tools_folder().join("sh"))
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Said::of(&output)
    }

    fn findings(&self, env: &[(&str, &str)]) -> Vec<Value> {
        let said = self.doctor(&["--json"], env);
        let document: Value =
            serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        assert_eq!(document["schema"], "checkrein/doctor/1");
        let findings = document["findings"].as_array().unwrap().clone();
        let faults = findings.iter().any(|finding| finding["status"] == "fault");
        assert_eq!(said.code, Some(i32::from(faults)), "{findings:#?}");
        findings
    }

    /// The one fault that there is now.
    fn fault(&self, about: &str, check: &str) -> Value {
        self.only(about, check, "fault", &[])
    }

    fn only(&self, about: &str, check: &str, status: &str, env: &[(&str, &str)]) -> Value {
        let findings = self.findings(env);
        let wrong: Vec<&Value> = findings
            .iter()
            .filter(|finding| finding["status"] == status)
            .collect();
        let [one] = wrong.as_slice() else {
            panic!("wanted one {status}, {about} {check}, among {findings:#?}");
        };
        assert_eq!(
            (&one["about"], &one["check"]),
            (&json!(about), &json!(check)),
            "{one:#}"
        );
        assert!(!one["so"].is_null() && !one["mend"].is_null(), "{one:#}");
        (*one).clone()
    }

    /// Nothing is said but that all is well.
    fn is_well(&self) {
        let findings = self.findings(&[]);
        let wrong: Vec<&Value> = findings
            .iter()
            .filter(|finding| finding["status"] != "ok")
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

/// An entry for every event of the agent.
fn entries(agent: &str, handler: impl Fn(&str) -> Value) -> Value {
    let events: serde_json::Map<String, Value> = adapters::find_adapter(agent)
        .unwrap()
        .hook_events()
        .iter()
        .map(|event| {
            let group = json!([{ "hooks": [handler(event)] }]);
            ((*event).to_owned(), group)
        })
        .collect();
    json!({ "hooks": events })
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) {
    std::os::unix::fs::symlink(from, to).unwrap();
}

#[cfg(not(unix))]
fn link(from: &Path, to: &Path) {
    std::fs::copy(from, to).unwrap();
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn a_healthy_repo_has_no_faults() {
    let healthy = Healthy::new();
    healthy.is_well();
    let said = healthy.doctor(&[], &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("All well."), "{}", said.stdout);
    assert!(said.stdout.contains("not installed"), "{}", said.stdout);
    assert!(
        !said.stdout.contains('\u{1b}'),
        "colours in a pipe: {}",
        said.stdout
    );
    // It looks, and changes nothing.
    assert!(!healthy.world.state().exists());
}

#[test]
fn a_hook_binary_that_is_gone() {
    let healthy = Healthy::new();
    let mut settings = healthy.claude();
    settings["hooks"]["Stop"][0]["hooks"][0]["command"] = json!("/nowhere/checkrein");
    healthy.settings(CLAUDE, &settings);
    let fault = healthy.fault("claude-code", "hook_binary_missing");
    assert!(
        text(&fault["what"]).contains("/nowhere/checkrein"),
        "{fault:#}"
    );
    // The line of the entry in the file as it is written.
    let written = std::fs::read_to_string(healthy.world.root().join(CLAUDE)).unwrap();
    let line = 1 + written
        .lines()
        .position(|line| line.contains("/nowhere/"))
        .unwrap();
    let (file, near) = text(&fault["where"]).rsplit_once(':').unwrap();
    let near: usize = near.parse().unwrap();
    assert!(
        file == CLAUDE && line.abs_diff(near) <= 10 && near <= line,
        "{fault:#}"
    );
    assert!(
        text(&fault["mend"]).contains("checkrein init --agent claude-code"),
        "{fault:#}"
    );
    healthy.settings(CLAUDE, &healthy.claude());
    healthy.is_well();
}

#[test]
fn a_malformed_file_is_dropped_whole() {
    let healthy = Healthy::new();
    let path = healthy.world.root().join(CLAUDE);
    let text_before = std::fs::read_to_string(&path).unwrap();
    healthy.world.write(
        CLAUDE,
        &text_before.replacen("\"Stop\": [", "\"Stop\": [,", 1),
    );
    let findings = healthy.findings(&[]);
    let fault = findings
        .iter()
        .find(|finding| finding["check"] == "settings_malformed")
        .unwrap_or_else(|| panic!("{findings:#?}"));
    assert_eq!(fault["status"], "fault");
    let line = 1 + text_before
        .lines()
        .position(|line| line.contains("\"Stop\": ["))
        .unwrap();
    assert_eq!(fault["where"], format!("{CLAUDE}:{line}"));
    assert!(text(&fault["so"]).contains("whole file"), "{fault:#}");
    // And what follows: none of our entries is left.
    assert!(
        findings
            .iter()
            .any(|finding| finding["about"] == "claude-code"
                && finding["what"] == "no hook of ours is in force"),
        "{findings:#?}"
    );
    healthy.world.write(CLAUDE, &text_before);
    healthy.is_well();
}

#[test]
fn a_flat_handler_and_a_string_timeout() {
    let healthy = Healthy::new();
    let handler = healthy.claude()["hooks"]["PreToolUse"][0]["hooks"][0].clone();
    let mut flat = healthy.claude();
    flat["hooks"]["PreToolUse"][0] = handler;
    let mut text_timeout = healthy.claude();
    text_timeout["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] = json!("30");
    for (settings, check, mend) in [
        (flat, "flat_handler", "\"hooks\": ["),
        (text_timeout, "bad_timeout", "number"),
    ] {
        healthy.settings(CLAUDE, &settings);
        let findings = healthy.findings(&[]);
        let fault = findings
            .iter()
            .find(|finding| finding["check"] == check)
            .unwrap_or_else(|| panic!("{check}: {findings:#?}"));
        assert_eq!(fault["status"], "fault");
        assert!(
            text(&fault["where"]).starts_with(&format!("{CLAUDE}:")),
            "{fault:#}"
        );
        assert!(
            text(&fault["where"]).contains("hooks.PreToolUse[0]"),
            "{fault:#}"
        );
        assert!(text(&fault["so"]).contains("whole file"), "{fault:#}");
        assert!(text(&fault["mend"]).contains(mend), "{fault:#}");
    }
}

#[test]
fn a_matcher_that_never_matches() {
    let healthy = Healthy::new();
    let mut settings = healthy.claude();
    settings["hooks"]["PreToolUse"][0]["matcher"] = json!("bash");
    healthy.settings(CLAUDE, &settings);
    let findings = healthy.findings(&[]);
    let fault = findings
        .iter()
        .find(|finding| finding["check"] == "matcher_never_matches")
        .unwrap_or_else(|| panic!("{findings:#?}"));
    assert_eq!(fault["status"], "fault");
    assert!(!fault["mend"].is_null(), "{fault:#}");
    assert!(
        findings
            .iter()
            .any(|finding| finding["check"] == "event_missing"
                && finding["what"] == "no entry for PreToolUse"),
        "{findings:#?}"
    );
    // Another tool's matcher is its own affair.
    let mut settings = healthy.claude();
    let other = json!({ "matcher": "bash", "hooks": [{ "type": "command", "command": "other" }] });
    settings["hooks"]["PreToolUse"]
        .as_array_mut()
        .unwrap()
        .push(other);
    healthy.settings(CLAUDE, &settings);
    healthy.is_well();
}

#[test]
fn hooks_that_codex_was_not_told_to_trust() {
    let healthy = Healthy::new();
    // A changed deadline is a changed hook.
    let mut settings = healthy.codex();
    let command = &mut settings["hooks"]["Stop"][0]["hooks"][0]["command"];
    *command = json!(text(command).replace("--deadline 120", "--deadline 119"));
    healthy.settings(CODEX, &settings);
    let fault = healthy.fault("codex", "hook_untrusted");
    assert!(
        text(&fault["what"]).contains("changed after it was agreed to: Stop"),
        "{fault:#}"
    );
    healthy.trust();
    healthy.is_well();
    // Never asked.
    let config = std::fs::read_to_string(healthy.codex_config()).unwrap();
    let project = config.split("[hooks.state").next().unwrap();
    healthy.put(&healthy.codex_config(), project);
    let fault = healthy.fault("codex", "hook_untrusted");
    assert!(
        text(&fault["what"]).contains("never agreed to"),
        "{fault:#}"
    );
    assert!(
        text(&fault["mend"]).contains("start codex here once"),
        "{fault:#}"
    );
    let said = healthy.doctor(&["--agent", "codex"], &[]);
    assert!(
        said.stdout
            .contains("canary not played: the hooks are skipped, see above"),
        "{said:?}"
    );
    // The repo itself.
    healthy.put(
        &healthy.codex_config(),
        &config.replace("\"trusted\"", "\"untrusted\""),
    );
    let fault = healthy.fault("codex", "project_not_trusted");
    let root = healthy.world.root().canonicalize().unwrap();
    assert!(
        text(&fault["mend"]).contains(&format!("[projects.{}]", json!(root))),
        "{fault:#}"
    );
}

#[test]
fn hooks_that_are_switched_off() {
    let healthy = Healthy::new();
    let user = healthy.home().join(".claude/settings.json");
    healthy.put(&user, "{\n  \"disableAllHooks\": true\n}\n");
    let fault = healthy.fault("claude-code", "hooks_disabled");
    assert!(
        text(&fault["where"]).starts_with("~/.claude/settings.json:2"),
        "{fault:#}"
    );
    std::fs::remove_file(&user).unwrap();
    healthy.is_well();
    let config = std::fs::read_to_string(healthy.codex_config()).unwrap();
    healthy.put(
        &healthy.codex_config(),
        &format!("{config}[features]\nhooks = false\n"),
    );
    let fault = healthy.fault("codex", "hooks_disabled");
    assert!(text(&fault["mend"]).contains("hooks = false"), "{fault:#}");
}

#[test]
fn a_stop_hook_that_is_out_of_time_before_the_checks_are() {
    let healthy = Healthy::new();
    // One verified stop, so that it is known how long the check takes.
    Agent::new(&healthy.world, "claude-code").stop();
    assert_eq!(healthy.world.runs("tests"), 1);
    healthy.is_well();
    // Four seconds are less than the five that are kept for the answer.
    let mut settings = healthy.claude();
    let handler = &mut settings["hooks"]["Stop"][0]["hooks"][0];
    handler["timeout"] = json!(4);
    handler["args"][5] = json!("4");
    healthy.settings(CLAUDE, &settings);
    let fault = healthy.fault("claude-code", "timeout_too_short");
    let what = text(&fault["what"]);
    assert!(
        what.contains("waits 4 s") && what.contains("'tests' took"),
        "{fault:#}"
    );
    assert!(text(&fault["mend"]).contains("\"timeout\": 6"), "{fault:#}");
}

#[test]
fn a_check_that_was_never_timed_may_take_its_whole_timeout() {
    let healthy = Healthy::new();
    let config = std::fs::read_to_string(healthy.world.root().join("checkrein.toml")).unwrap();
    healthy.world.config(&config.replace("\"60s\"", "\"20m\""));
    let findings = healthy.findings(&[]);
    let warnings: Vec<&Value> = findings
        .iter()
        .filter(|finding| finding["status"] == "warning")
        .collect();
    assert_eq!(warnings.len(), 2, "both agents: {findings:#?}");
    for warning in warnings {
        assert_eq!(warning["check"], "timeout_too_short");
        assert!(
            text(&warning["mend"]).contains("\"timeout\": 1260"),
            "{warning:#}"
        );
    }
}

#[test]
fn an_entry_that_believes_in_more_time_than_it_has() {
    let healthy = Healthy::new();
    let mut settings = healthy.claude();
    settings["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] = json!(10);
    healthy.settings(CLAUDE, &settings);
    let fault = healthy.fault("claude-code", "deadline_mismatch");
    assert!(text(&fault["mend"]).contains("--deadline 10"), "{fault:#}");
}

#[test]
fn a_profile_that_prints() {
    let healthy = Healthy::new();
    let noisy = healthy.home().join("noisy.sh");
    healthy.put(&noisy, "# greetings\necho WELCOME BACK\n");
    let bash = healthy.tools_folder().join("bash");
    if bash.exists() {
        let env = [
            ("BASH_ENV", noisy.to_str().unwrap()),
            ("SHELL", bash.to_str().unwrap()),
        ];
        let fault = healthy.only("codex", "profile_prints", "fault", &env);
        assert!(text(&fault["what"]).contains("WELCOME BACK"), "{fault:#}");
        let place = format!("{}:2", noisy.display());
        assert!(text(&fault["mend"]).contains(&place), "{fault:#}");
    }
    // Read by login shells only.
    healthy.put(&healthy.home().join(".profile"), "echo GOOD MORNING\n");
    let warning = healthy.only("codex", "profile_prints", "warning", &[]);
    assert!(text(&warning["mend"]).contains(".profile:1"), "{warning:#}");
    // Claude Code's entries name a program and its arguments: no shell, no fault.
}

#[test]
fn hooks_of_a_plug_in_that_is_off_or_unreadable() {
    let healthy = Healthy::new();
    std::fs::remove_file(healthy.world.root().join(CLAUDE)).unwrap();
    let folder = healthy.home().join(".claude");
    let plugin = folder.join("plugins/cache/market/rein/1.0.0");
    let list = json!({ "version": 2, "plugins": { "rein@market": [
        { "scope": "user", "installPath": plugin, "version": "1.0.0" },
    ] } });
    healthy.put(
        &folder.join("plugins/installed_plugins.json"),
        &list.to_string(),
    );
    let hooks = plugin.join("hooks/hooks.json");
    healthy.put(&hooks, &healthy.claude().to_string());
    let enable = |on: bool| {
        let settings = json!({ "enabledPlugins": { "rein@market": on } });
        healthy.put(&folder.join("settings.json"), &settings.to_string());
    };
    let about_plugin = || {
        let findings = healthy.findings(&[]);
        let about = |finding: &&Value| text(&finding["check"]).starts_with("plugin");
        findings
            .iter()
            .find(about)
            .cloned()
            .unwrap_or_else(|| panic!("{findings:#?}"))
    };
    enable(false);
    let fault = about_plugin();
    assert_eq!(
        (&fault["check"], &fault["status"]),
        (&json!("plugin_disabled"), &json!("fault"))
    );
    assert_eq!(fault["mend"], "claude plugin enable rein@market");
    enable(true);
    assert_eq!(about_plugin()["status"], "ok");
    let broken = healthy
        .claude()
        .to_string()
        .replacen("\"timeout\":120", "\"timeout\":\"120\"", 1);
    healthy.put(&hooks, &broken);
    let fault = about_plugin();
    assert_eq!(
        (&fault["check"], &fault["status"]),
        (&json!("plugin_unreadable"), &json!("fault"))
    );
}

#[test]
fn gates_that_fell_silent() {
    let healthy = Healthy::new();
    let transcript = healthy.home().join(".claude/projects/repo/s.jsonl");
    let root = healthy.world.root().canonicalize().unwrap();
    let line = json!({ "type": "user", "cwd": root }).to_string();
    healthy.put(&transcript, &format!("{line}\n"));
    let findings = healthy.findings(&[]);
    assert!(
        findings
            .iter()
            .any(|finding| finding["check"] == "silent" && finding["status"] == "warning"),
        "{findings:#?}"
    );
    // Heard of once, and then worked for days without.
    let agent = Agent::new(&healthy.world, "claude-code");
    agent.tell(&agent.message("SessionStart", json!({ "source": "startup" })));
    agent.prompt("go");
    healthy.is_well();
    let later = SystemTime::now() + Duration::from_secs(3 * 24 * 60 * 60 + 60);
    let file = std::fs::File::options()
        .write(true)
        .open(&transcript)
        .unwrap();
    file.set_modified(later).unwrap();
    let fault = healthy.fault("claude-code", "silent");
    assert!(text(&fault["what"]).contains("3 days"), "{fault:#}");
}

#[test]
fn a_config_that_cannot_be_read() {
    let healthy = Healthy::new();
    let config = std::fs::read_to_string(healthy.world.root().join("checkrein.toml")).unwrap();
    healthy.world.config("accept = \"nothing\"\n");
    let fault = healthy.fault("repo", "config_error");
    assert!(text(&fault["what"]).contains("nothing"), "{fault:#}");
    healthy.world.config(&config);
    healthy.is_well();
}

#[test]
fn a_store_of_a_later_version() {
    let healthy = Healthy::new();
    Agent::new(&healthy.world, "claude-code").prompt("go");
    healthy.is_well();
    let store = healthy.world.store_folder().join("store.db");
    rusqlite::Connection::open(store)
        .unwrap()
        .execute_batch("UPDATE meta SET schema = 99, min_reader = 99")
        .unwrap();
    let fault = healthy.fault("repo", "store_too_new");
    assert!(text(&fault["mend"]).contains("upgrade"), "{fault:#}");
}

#[test]
#[cfg(unix)]
fn a_repo_switched_off_and_a_policy_that_is_held() {
    let healthy = Healthy::new();
    let off = ["off", "--for", "1h", "--reason", "the build server is down"];
    let said = Terminal::new(&healthy.world).says(&off);
    assert_eq!(said.code, Some(0), "{said:?}");
    let fault = healthy.fault("repo", "off");
    assert!(
        text(&fault["what"]).contains("the build server is down"),
        "{fault:#}"
    );
    assert_eq!(fault["mend"], "checkrein on");
    assert_eq!(Terminal::new(&healthy.world).says(&["on"]).code, Some(0));
    healthy.is_well();

    let agent = Agent::new(&healthy.world, "claude-code");
    agent.prompt("go");
    healthy.world.config("# loosened\n");
    agent.stop();
    let warning = healthy.only("repo", "held", "warning", &[]);
    assert!(
        text(&warning["what"]).contains("checkrein.toml"),
        "{warning:#}"
    );
    assert_eq!(warning["mend"], "checkrein seal");
}

#[test]
fn user_hooks_in_a_repo_that_nobody_approved() {
    let healthy = Healthy::new();
    std::fs::remove_file(healthy.world.root().join(CLAUDE)).unwrap();
    let mut settings = healthy.claude();
    for groups in settings["hooks"].as_object_mut().unwrap().values_mut() {
        let words = groups[0]["hooks"][0]["args"].as_array_mut().unwrap();
        words.extend(["--require-trust", "--state"].map(Value::from));
        words.push(json!(healthy.world.state()));
    }
    let file = healthy.home().join(".claude/settings.json");
    healthy.put(&file, &settings.to_string());
    let warning = healthy.only("claude-code", "not_trusted", "warning", &[]);
    assert_eq!(warning["mend"], "checkrein trust");
}

#[test]
fn an_agent_nobody_knows_is_a_usage_error() {
    let healthy = Healthy::new();
    let said = healthy.doctor(&["--agent", "clippy"], &[]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("known: claude-code, codex"),
        "{said:?}"
    );
    let said = healthy.doctor(&["--agent", "codex"], &[]);
    assert!(!said.stdout.contains("Claude Code"), "{}", said.stdout);
}

/// A program that leaves a mark if it is started.
#[cfg(unix)]
fn trap(healthy: &Healthy, name: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let mark = healthy.world.outside("PWNED");
    healthy.world.write(
        name,
        &format!(
            "#!/bin/sh\ntouch '{}'\nprintf '\\033[2Jx\\n'\n",
            mark.display()
        ),
    );
    let file = healthy.world.root().join(name);
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// An agent that runs no hook, and keeps the settings that it was given.
#[cfg(unix)]
fn keeping_agent(healthy: &Healthy) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let (kept, file) = (
        healthy.world.outside("kept"),
        healthy.tools_folder().join("claude"),
    );
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && {{ echo 2.1.330; exit 0; }}\ncat .claude/*.json \"$HOME\"/.claude/*.json > '{}' 2>/dev/null\nexit 0\n",
        kept.display()
    );
    healthy.put(&file, &script);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    kept
}

#[cfg(unix)]
#[test]
fn the_canary_starts_nothing_that_a_clone_put_beside_our_call() {
    let healthy = Healthy::new();
    let kept = keeping_agent(&healthy);
    let bin = Healthy::bin();
    let call = format!("{bin} hook claude-code --source project --deadline 30");
    let shell = |line: String| json!({ "type": "command", "command": line, "timeout": 30 });
    let spelled: Vec<Value> = vec![
        shell(format!("touch x; {call}")),
        shell(format!("touch x && {call}")),
        shell(format!("{call} || touch x")),
        shell(format!("{call} | touch x")),
        shell(format!("{call} $(touch x)")),
        shell(format!("{call} \"`touch x`\"")),
        shell(format!("touch x\n{call}")),
        shell(format!("BASH_ENV=touch {call}")),
        shell(format!("PATH=touch:/x/checkrein {call}")),
        shell(format!("sh -c 'touch x; {call}'")),
        json!({ "type": "command", "command": "sh", "args": ["-c", format!("touch x; {call}")] }),
        json!({ "type": "command", "command": "sh",
            "args": ["-c", format!("command -v checkrein >/dev/null 2>&1 || touch x; exec {call}")] }),
        json!({ "type": "command", "command": "./touch/checkrein",
            "args": ["hook", "claude-code", "--source", "project", "--deadline", "30"] }),
        json!({ "type": "http", "url": "http://touch/", "command": bin,
            "args": ["hook", "claude-code", "--source", "project", "--deadline", "30"] }),
        json!({ "type": "command", "command": bin, "commandWindows": "touch x",
            "args": ["hook", "claude-code", "--source", "project", "--deadline", "30"] }),
    ];
    for handler in &spelled {
        // Groups and the files as a whole may not bring anything along either.
        let settings = json!({ "env": { "X": "touch" },
            "hooks": { "Stop": [{ "touch": "x", "hooks": [handler] }] } });
        healthy.settings(".claude/settings.json", &settings);
        let _ = std::fs::remove_file(&kept);
        healthy.doctor(&["--agent", "claude-code", "--json"], &[]);
        let given = std::fs::read_to_string(&kept).expect("the canary was not played");
        assert!(given.contains("hook"), "our own entries are gone: {given}");
        assert!(!given.contains("touch"), "{handler}\n{given}");
    }
}

#[cfg(unix)]
#[test]
fn what_a_clone_calls_checkrein_is_not_started() {
    let healthy = Healthy::new();
    let kept = keeping_agent(&healthy);
    trap(&healthy, "tools/checkrein");
    let inside = healthy.world.root().join("tools/checkrein");
    let path = format!(
        "{}:{}:.",
        healthy.world.root().join("tools").display(),
        healthy.tools_folder().display()
    );
    for (program, env) in [
        ("./tools/checkrein", vec![]),
        ("tools/checkrein", vec![]),
        (inside.to_str().unwrap(), vec![]),
        // Settings of the clone, or a habit, put its folder in front.
        ("checkrein", vec![("PATH", path.as_str())]),
    ] {
        for file in [".claude/settings.json", CLAUDE] {
            let _ = std::fs::remove_file(healthy.world.root().join(".claude/settings.json"));
            healthy.settings(CLAUDE, &json!({}));
            let hooks = entries("claude-code", |_| {
                json!({ "type": "command", "command": program, "timeout": TIMEOUT,
                "args": ["hook", "claude-code", "--source", "local", "--deadline", TIMEOUT.to_string()] })
            });
            healthy.settings(file, &hooks);
            let _ = std::fs::remove_file(&kept);
            let mut env = env.clone();
            env.push(("SHELL", inside.to_str().unwrap()));
            let said = healthy.doctor(&["--agent", "claude-code"], &env);
            assert!(
                !healthy.world.outside("PWNED").exists(),
                "{program} {said:?}"
            );
            assert!(!said.stdout.contains('\u{1b}'), "{said:?}");
            assert!(
                said.stdout.contains("not started") || said.stdout.contains("not on the PATH"),
                "{program} {said:?}"
            );
            let given = std::fs::read_to_string(&kept).unwrap_or_default();
            assert!(!given.contains("checkrein"), "{program} {given}");
        }
    }
}
