//! Lists files that programs load by a fixed name. A script that writes one and then starts the
//! program runs what it has written.

/// Programs, and the names or patterns of the files that they load.
const AUTOLOADED_FILES: &[(&[&str], &[&str])] = &[
    (
        &["make", "gmake", "bmake"],
        &["Makefile", "makefile", "GNUmakefile", "*.mk"],
    ),
    (
        &["npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"],
        &["package.json", ".npmrc", ".yarnrc*"],
    ),
    (
        &["python", "pypy", "ipython", "pip", "pytest", "tox", "nox"],
        &["sitecustomize.py", "usercustomize.py", "*.pth"],
    ),
    (&["pip", "uv", "poetry", "pipx", "build"], &["setup.py"]),
    (&["pytest", "py.test"], &["conftest.py", "pytest.ini"]),
    (&["tox"], &["tox.ini"]),
    (&["nox"], &["noxfile.py"]),
    (&["cargo"], &["build.rs", "config.toml", "Cargo.toml"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["task", "go-task"], &["Taskfile.y*ml"]),
    (&["rake"], &["Rakefile", "*.rake"]),
    (&["bundle", "bundler"], &["Gemfile"]),
    (&["composer"], &["composer.json"]),
    (&["ant"], &["build.xml"]),
    (&["mvn", "mvnw"], &["pom.xml"]),
    (&["gradle", "gradlew"], &["*.gradle", "*.gradle.kts"]),
    (&["cmake", "ctest"], &["CMakeLists.txt"]),
    (&["meson"], &["meson.build"]),
    (&["scons"], &["SConstruct"]),
    (&["ninja"], &["build.ninja"]),
    (&["invoke", "inv", "fab"], &["tasks.py", "fabfile.py"]),
    (&["gulp"], &["gulpfile.*"]),
    (&["grunt"], &["Gruntfile.*"]),
    (&["pre-commit"], &[".pre-commit-config.yaml"]),
    (&["git"], &[".gitconfig"]),
    (&["perl"], &["*.pm"]),
    (&["gdb"], &[".gdbinit"]),
    (&["vim", "nvim", "ex"], &[".vimrc", ".exrc"]),
];

/// Returns the names of the files that a program loads, also for a versioned program name.
pub(crate) fn files_autoloaded_by_program(program: &str) -> impl Iterator<Item = &'static str> {
    let plain = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let rows = AUTOLOADED_FILES.iter().filter(move |(programs, _)| {
        programs
            .iter()
            .any(|name| *name == program || *name == plain)
    });
    rows.flat_map(|(_, files)| files.iter().copied())
        .collect::<Vec<_>>()
        .into_iter()
}
