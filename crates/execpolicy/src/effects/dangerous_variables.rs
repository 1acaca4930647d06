//! Recognizes environment variables whose value is a command, or which make programs load code or
//! read another configuration.

use super::evaluation::NestedCommandOrCode;
use super::program_spec::NonFileEffectKind;
use crate::shell::{CommandWord, WordKnowledge};

/// Variables whose value is a command that some program runs.
const COMMANDS: &[&str] = &[
    "PAGER",
    "GIT_PAGER",
    "MANPAGER",
    "EDITOR",
    "VISUAL",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "BROWSER",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RSYNC_RSH",
    "CVS_RSH",
    "PROMPT_COMMAND",
    "FCEDIT",
    "PSQL_PAGER",
    "PSQL_EDITOR",
    "SYSTEMD_PAGER",
    "AWS_PAGER",
    "GH_PAGER",
    "GH_EDITOR",
    "BAT_PAGER",
    "DELTA_PAGER",
    "KUBE_EDITOR",
    "SVN_EDITOR",
    "HGEDITOR",
];

/// Variables with which programs load code, read code, or look for it elsewhere.
const CODE: &[&str] = &[
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "BASH_ENV",
    "LUA_INIT",
    "DOTNET_STARTUP_HOOKS",
    "RIPGREP_CONFIG_PATH",
    "GIT_ALLOW_PROTOCOL",
    "MAKEFILES",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "NODE_PATH",
    "XDG_CONFIG_HOME",
    "PERLDB_OPTS",
    "PYTHONINSPECT",
    "BASH_CMDS",
    "BASH_ALIASES",
    "ENV",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PYTHONBREAKPOINT",
    "PERL5OPT",
    "PERL5DB",
    "RUBYOPT",
    "PS4",
    "GIT_CONFIG",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "LESSOPEN",
    "LESSCLOSE",
    "VIMINIT",
    "EXINIT",
    "MYVIMRC",
    "SHELLOPTS",
    "BASHOPTS",
    "TAR_OPTIONS",
    "CDPATH",
    "HOME",
    "npm_config_script_shell",
    "NPM_CONFIG_SCRIPT_SHELL",
    "ZDOTDIR",
    "INPUTRC",
    "GCONV_PATH",
    "HOSTALIASES",
    "WGETRC",
    "CURL_HOME",
];

/// Variables of `make` that name a tool which a build runs.
const TOOLS: &[&str] = &[
    "CC", "CXX", "CPP", "LD", "AR", "AS", "FC", "RANLIB", "STRIP", "LEX", "YACC", "RM", "INSTALL",
    "TEX", "CTANGLE", "CWEAVE", "LINT", "M2C", "PC", "GET", "CO", "MAKE", "MAKEINFO", "WEAVE",
    "TANGLE",
];

/// Whether this setting makes a build run something other than a compiler.
pub(crate) fn build_variable_runs_program(name: &str, value: &str) -> bool {
    // GNU make builds its implicit rules from these: `COMPILE.c`, `LINK.o`.
    let tool = TOOLS.contains(&name)
        || ["COMPILE.", "LINK.", "PREPROCESS."]
            .iter()
            .any(|begin| name.starts_with(begin));
    // A sign such as `;` or `$(` would let the value run a second command.
    let plain = value
        .chars()
        .all(|c| c.is_alphanumeric() || " ._-+/=:,".contains(c));
    // Two words, because a compiler often stands behind a wrapper: `ccache gcc-13`.
    let compiler = value.split_whitespace().take(2).any(|word| {
        [
            "cc", "gcc", "g++", "c++", "clang", "clang++", "ld", "ar", "as", "cpp", "lld", "zig",
            "ranlib", "strip",
        ]
        .iter()
        .any(|end| {
            word.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'))
                .ends_with(end)
        })
    });
    tool && !(plain && (compiler || value.is_empty()))
}

/// What setting a variable does.
pub(crate) enum EnvVariableHazard {
    /// Its value is a command that some program runs.
    Runs(NestedCommandOrCode),
    /// A person is asked.
    Prompts(&'static str),
}

/// Returns what setting `name` to this value can do.
pub(crate) fn hazard_of_setting_variable(
    name: &str,
    value: Option<&CommandWord>,
) -> Option<EnvVariableHazard> {
    let text = value.map_or("", |word| word.text.as_str());
    // The value is judged as a script. Emptied, such a variable runs nothing.
    if COMMANDS.contains(&name)
        || (name.starts_with("CARGO_TARGET_")
            && (name.ends_with("_RUNNER") || name.ends_with("_LINKER")))
    {
        let value = value.filter(|word| !word.text.is_empty())?;
        return Some(EnvVariableHazard::Runs(NestedCommandOrCode::Script(
            value.clone(),
        )));
    }
    // The rest are dangerous by name, or only with certain text in the value: `GOFLAGS` with
    // `-toolexec`, `NODE_OPTIONS` with `--require`, a prompt with a substitution.
    let loads = CODE.contains(&name)
        || build_variable_runs_program(name, text)
        || name == "GOFLAGS" && text.contains("exec")
        || matches!(
            name,
            "HUSKY" | "LEFTHOOK" | "HUSKY_SKIP_HOOKS" | "PRE_COMMIT_ALLOW_NO_CONFIG"
        )
        || matches!(name, "DOCKER_HOST" | "DOCKER_CONTEXT" | "KUBECONFIG") && text.contains("://")
        || matches!(name, "PS0" | "PS1" | "PS2") && text.contains(['(', '`'])
        || matches!(name, "LD_LIBRARY_PATH" | "DYLD_LIBRARY_PATH")
            && (text.starts_with('.') || text.contains("PWD"))
        || name.starts_with("BASH_FUNC_")
        || name.starts_with("GIT_CONFIG_KEY")
        || name == "NODE_OPTIONS"
            && (["--require", "-r ", "--import", "--loader", "--eval"]
                .iter()
                .any(|flag| text.contains(flag))
                || value.is_none_or(|word| word.knowledge != WordKnowledge::Literal))
        || name == "JAVA_TOOL_OPTIONS" && (text.contains("agent") || text.contains("OnError"))
        || matches!(name, "MAKEFLAGS" | "GNUMAKEFLAGS")
            && (text.contains("eval") || text.contains("SHELL"))
        || name == "RUSTFLAGS" && text.contains("linker");
    loads.then_some(EnvVariableHazard::Prompts(
        NonFileEffectKind::UnreadableCode
            .prompt_reason(true)
            .unwrap_or(""),
    ))
}
