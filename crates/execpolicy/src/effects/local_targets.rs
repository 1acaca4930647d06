//! Recognizes commands whose target is this machine: a local registry or a development cluster.
//! What goes there affects nobody else, so it is no hazard.

use super::programs::is_url_of_this_machine;
use crate::shell::CommandWord;

/// Names that development tools give to their clusters.
const OWN_CLUSTERS: &[&str] = &["minikube", "docker-desktop", "rancher-desktop", "orbstack"];
/// Prefixes of such names.
const OWN_CLUSTERS_BEGIN: &[&str] = &["kind-", "k3d-"];

/// Whether these words name a target on this machine and no other.
pub(super) fn command_targets_only_localhost(program: &str, words: &[CommandWord]) -> bool {
    let own = words
        .iter()
        .take_while(|word| word.as_literal() != Some("--"));
    // One word that is not literal may hold another target, so all of them must be.
    let texts: Option<Vec<&str>> = own.map(CommandWord::as_literal).collect();
    let Some(texts) = texts else { return false };
    match program {
        "npm" | "pnpm" | "yarn" | "bun" => {
            all_option_values_match(&texts, &["--registry"], is_local_url)
        }
        "twine" => all_option_values_match(&texts, &["--repository-url"], is_local_url),
        "docker" | "podman" | "nerdctl" => pushes_to_local_registry(&texts),
        "kubectl" | "oc" | "kubecolor" => {
            // These override the cluster or the account of the context.
            let elsewhere = ["-s", "--server", "--cluster", "--kubeconfig", "--user"];
            all_option_values_match(&texts, &["--context"], is_local_cluster)
                && !has_any_option(&texts, &elsewhere)
        }
        "helm" => {
            let elsewhere = ["--kube-apiserver", "--kubeconfig"];
            all_option_values_match(&texts, &["--kube-context"], is_local_cluster)
                && !has_any_option(&texts, &elsewhere)
        }
        _ => false,
    }
}

/// Whether one of these options is given, and every value of it passes `is_such`.
fn all_option_values_match(words: &[&str], names: &[&str], is_such: fn(&str) -> bool) -> bool {
    let mut found = false;
    for (at, word) in words.iter().enumerate() {
        let value = match word.split_once('=') {
            Some((name, value)) if names.contains(&name) => value,
            _ if names.contains(word) => words.get(at + 1).copied().unwrap_or_default(),
            _ => continue,
        };
        // Programs differ on whether the first or the last of two options wins.
        if !is_such(value) {
            return false;
        }
        found = true;
    }
    found
}

fn has_any_option(words: &[&str], names: &[&str]) -> bool {
    words.iter().any(|word| {
        let long = word.split('=').next().unwrap_or(word);
        // A letter can have its value attached: `-shttps://...`.
        let short = names.iter().filter(|name| !name.starts_with("--"));
        names.contains(&long)
            || short
                .into_iter()
                .any(|name| !word.starts_with("--") && word.starts_with(name))
    })
}

fn is_local_url(text: &str) -> bool {
    text.contains("://") && is_url_of_this_machine(text)
}

fn is_local_cluster(name: &str) -> bool {
    OWN_CLUSTERS.contains(&name)
        || OWN_CLUSTERS_BEGIN
            .iter()
            .any(|begin| name.starts_with(begin))
}

/// Whether the words push an image to a local registry: `docker push localhost:5000/image`.
fn pushes_to_local_registry(words: &[&str]) -> bool {
    match words {
        [_, "push", image] | [_, "image", "push", image] => {
            image.contains(':')
                && image
                    .split_once('/')
                    .is_some_and(|(host, _)| is_url_of_this_machine(host))
        }
        _ => false,
    }
}
