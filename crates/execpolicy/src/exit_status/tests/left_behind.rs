//! What is left behind by what starts it, and what builds make of their tests.

use super::*;

#[test]
fn detached_commands_are_hidden() {
    for script in [
        "docker run -d app pytest",
        "docker run -dit app pytest",
        "docker run --rm --detach -e A=b app pytest",
        "docker exec -d c pytest",
        "docker compose run -d app pytest",
        "docker-compose run -d app pytest",
        "podman run -d app sh -c 'pytest -q'",
        "setsid pytest",
        "setsid -f pytest",
        "systemd-run --user pytest",
        "tmux new -d 'pytest -q'",
        "tmux new-session -d -s t pytest",
        "screen -dmS t pytest",
        "echo pytest | at now",
        "start-stop-daemon -S -b -x /usr/bin/pytest",
        "mvn -fn test",
        "mvn --fail-never verify",
        "./mvnw -Dmaven.test.failure.ignore=true verify",
        "mvn test -D maven.test.failure.ignore",
    ] {
        let told = read(script, &[]);
        assert!(
            !told.is_empty() && told.iter().all(|told| told.contains(" <- ")),
            "{script}: {told:?}"
        );
    }
    check(
        "docker run -d app pytest",
        &["docker run -d app pytest <- docker --detach"],
    );
    check("mvn -fn test", &["mvn -fn test <- -fn"]);
}

#[test]
fn requested_but_skipped_tests_may_not_run() {
    for script in [
        "mvn -DskipTests test",
        "mvn verify -Dmaven.test.skip=true",
        "gradle -m test",
        "./gradlew --dry-run check",
        "./gradlew test -x test",
    ] {
        check(script, &[&format!("{script} ?")]);
    }
}

#[test]
fn waited_commands_are_not_hidden() {
    for script in [
        "docker run --rm app pytest -d",
        "docker run -it app pytest",
        "docker compose run app pytest",
        "setsid -w pytest",
        "setsid --wait pytest",
        "systemd-run --user --wait pytest",
        "mvn -q test",
        "mvn -Dmaven.test.failure.ignore=false test",
        "mvn -DskipTests package",
        "mvn -DskipTests=false test",
        "gradle build -x test",
        "./gradlew assemble --exclude-task :app:test",
        "./gradlew check",
    ] {
        let told = read(script, &[]);
        let counts = |told: &String| !told.contains(" <- ") && !told.contains('?');
        assert!(told.iter().all(counts), "{script}: {told:?}");
    }
}
