//! Determines what the options of Maven and Gradle make of their tests.

/// What becomes of the tests of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MavenGradleTestHandling {
    /// They run, and their failure is the build's.
    Count,
    /// They run, and this option hides their failure from the build.
    Ignored(String),
    /// They are asked for by name and do not run.
    Skipped,
    /// They are left out of a build that is asked for something else.
    LeftOut,
}

/// Returns what `rest`, the arguments of this program, makes of its tests.
pub(super) fn test_handling_by_build_args(program: &str, rest: &[&str]) -> MavenGradleTestHandling {
    match program {
        "mvn" | "mvnw" | "mvnd" => classify_maven_test_arguments(rest),
        "gradle" | "gradlew" => test_handling_by_gradle_args(rest),
        _ => MavenGradleTestHandling::Count,
    }
}

fn classify_maven_test_arguments(rest: &[&str]) -> MavenGradleTestHandling {
    // Without a value, a property on the command line is true: `-DskipTests`.
    let on = |name: &str| {
        rest.iter().any(|word| {
            let property = word.strip_prefix("-D").unwrap_or(word);
            let value = property.strip_prefix(name);
            value.is_some_and(|value| value.is_empty() || value == "=true")
        })
    };
    if on("skipTests") || on("maven.test.skip") {
        return maven_gradle_excluded_test_handling(rest, &["test", "integration-test", "verify"]);
    }
    if let Some(word) = rest
        .iter()
        .find(|word| matches!(**word, "-fn" | "--fail-never"))
    {
        return MavenGradleTestHandling::Ignored((*word).to_owned());
    }
    match on("maven.test.failure.ignore") {
        true => MavenGradleTestHandling::Ignored("-Dmaven.test.failure.ignore".to_owned()),
        false => MavenGradleTestHandling::Count,
    }
}

fn test_handling_by_gradle_args(rest: &[&str]) -> MavenGradleTestHandling {
    let dry = ["-m", "--dry-run", "--test-dry-run"];
    if rest.iter().any(|word| dry.contains(word)) {
        return MavenGradleTestHandling::Skipped;
    }
    // A task may be named with its project: `:app:test`.
    let tests = |task: &str| task.rsplit(':').next() == Some("test");
    let excluded = rest
        .iter()
        .zip(rest.iter().skip(1))
        .any(|(option, task)| matches!(*option, "-x" | "--exclude-task") && tests(task))
        || rest
            .iter()
            .any(|word| *word == "-xtest" || *word == "--exclude-task=test");
    if !excluded {
        return MavenGradleTestHandling::Count;
    }
    // The task after `-x` is the one that is left out, not one that is asked for.
    let mut before = "";
    let asked: Vec<&str> = rest
        .iter()
        .filter(|word| {
            let value = matches!(before, "-x" | "--exclude-task");
            before = word;
            !value
        })
        .map(|word| word.rsplit(':').next().unwrap_or(word))
        .collect();
    maven_gradle_excluded_test_handling(&asked, &["test"])
}

fn maven_gradle_excluded_test_handling(rest: &[&str], asked: &[&str]) -> MavenGradleTestHandling {
    match rest.iter().any(|word| asked.contains(word)) {
        true => MavenGradleTestHandling::Skipped,
        false => MavenGradleTestHandling::LeftOut,
    }
}
