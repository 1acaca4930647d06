//! What stays on this machine: a registry, a cluster of one's own under which things are tried out.
//! What a program hands to it nobody else feels, so that this is no hazard.

use super::table::is_local;
use crate::shell::Word;

/// Names of clusters that tools make for development.
const OWN_CLUSTERS: &[&str] = &["minikube", "docker-desktop", "rancher-desktop", "orbstack"];
/// How such names begin.
const OWN_CLUSTERS_BEGIN: &[&str] = &["kind-", "k3d-"];

/// Whether these words name a place of this machine, and no other.
pub(super) fn is_meant(program: &str, words: &[Word]) -> bool {
    let own = words
        .iter()
        .take_while(|word| word.as_fixed() != Some("--"));
    let texts: Option<Vec<&str>> = own.map(Word::as_fixed).collect();
    let Some(texts) = texts else { return false };
    match program {
        "npm" | "pnpm" | "yarn" | "bun" => all(&texts, &["--registry"], is_address),
        "twine" => all(&texts, &["--repository-url"], is_address),
        "docker" | "podman" | "nerdctl" => pushes_here(&texts),
        "kubectl" | "oc" | "kubecolor" => {
            // They say where the cluster is, whatever the context says.
            let elsewhere = ["-s", "--server", "--cluster", "--kubeconfig", "--user"];
            all(&texts, &["--context"], is_own_cluster) && !any(&texts, &elsewhere)
        }
        "helm" => {
            let elsewhere = ["--kube-apiserver", "--kubeconfig"];
            all(&texts, &["--kube-context"], is_own_cluster) && !any(&texts, &elsewhere)
        }
        _ => false,
    }
}

/// Whether one of these options is there, and each time with such a value.
fn all(words: &[&str], names: &[&str], is_such: fn(&str) -> bool) -> bool {
    let mut found = false;
    for (at, word) in words.iter().enumerate() {
        let value = match word.split_once('=') {
            Some((name, value)) if names.contains(&name) => value,
            _ if names.contains(word) => words.get(at + 1).copied().unwrap_or_default(),
            _ => continue,
        };
        if !is_such(value) {
            return false;
        }
        found = true;
    }
    found
}

fn any(words: &[&str], names: &[&str]) -> bool {
    words.iter().any(|word| {
        let long = word.split('=').next().unwrap_or(word);
        // A letter can hang on its value.
        let short = names.iter().filter(|name| !name.starts_with("--"));
        names.contains(&long)
            || short
                .into_iter()
                .any(|name| !word.starts_with("--") && word.starts_with(name))
    })
}

fn is_address(text: &str) -> bool {
    text.contains("://") && is_local(text)
}

fn is_own_cluster(name: &str) -> bool {
    OWN_CLUSTERS.contains(&name)
        || OWN_CLUSTERS_BEGIN
            .iter()
            .any(|begin| name.starts_with(begin))
}

/// `docker push localhost:5000/image`
fn pushes_here(words: &[&str]) -> bool {
    match words {
        [_, "push", image] | [_, "image", "push", image] => {
            image.contains(':')
                && image
                    .split_once('/')
                    .is_some_and(|(host, _)| is_local(host))
        }
        _ => false,
    }
}
