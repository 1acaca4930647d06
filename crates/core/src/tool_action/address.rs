//! Returns the files that a text can mean: a path, or a URL of a file.

/// Bytes of a text that can be a path.
const MAX_PATH: usize = 4_096;

/// Schemes of addresses on other machines.
const REMOTE: &[&str] = &[
    "about", "blob", "data", "ftp", "ftps", "git", "gs", "http", "https", "mailto", "s3", "sftp",
    "ssh", "ws", "wss",
];

/// Returns the paths that a text can mean. A URL on another machine is no local file. What an
/// editor or server does with a scheme of its own is unknown, so everything that it could mean
/// counts.
pub(super) fn local_paths_of_path_or_url(text: &str) -> Vec<String> {
    let text = text.trim_matches([' ', '\t', '\r']);
    if text.is_empty() || text.len() > MAX_PATH || text.contains('\0') {
        return Vec::new();
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return vec![text.to_owned()];
    };
    let found: Vec<Option<String>> = match rest.strip_prefix("//") {
        _ if scheme.eq_ignore_ascii_case("file") => vec![file_url_path(rest)],
        // Without `//` the colon is part of an ordinary file name.
        None => return vec![text.to_owned()],
        Some(_) if is_remote_scheme(scheme) => return Vec::new(),
        Some(rest) => {
            let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
            let place = strip_line_and_column(place.split('#').next().unwrap_or(place));
            let below = place.find('/').and_then(|at| place.get(at..));
            // `idea://open?file=/a/b`
            let values = query.split('&').filter_map(|pair| pair.split_once('='));
            let values = values.flat_map(|(_, value)| {
                percent_decode(value).map(|value| local_paths_of_path_or_url(&value))
            });
            let values: Vec<Option<String>> = values.flatten().map(Some).collect();
            // `vscode://file/a/b` may mean `file/a/b` or `/a/b`, depending on whether the first
            // part is a host.
            [
                vec![percent_decode(place), below.and_then(percent_decode)],
                values,
            ]
            .concat()
        }
    };
    let found = found.into_iter().flatten();
    found.filter(|path| !path.is_empty()).collect()
}

/// Returns whether this is an address on another machine.
pub(super) fn is_remote_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.trim());
    scheme.is_some_and(is_remote_scheme)
}

fn is_remote_scheme(scheme: &str) -> bool {
    let scheme = scheme.to_ascii_lowercase();
    // `git+ssh://`
    scheme.split('+').any(|part| REMOTE.contains(&part))
}

/// Returns the path of a `file:` URL.
fn file_url_path(rest: &str) -> Option<String> {
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    percent_decode(match rest.strip_prefix("//") {
        // A host comes first. `file:` URLs name this machine.
        Some(place) => place.get(place.find('/').unwrap_or(0)..)?,
        None => rest,
    })
}

/// Removes the line and column of an editor: `/a/b:12:3`.
fn strip_line_and_column(place: &str) -> &str {
    let mut place = place;
    while let Some((before, number)) = place.rsplit_once(':')
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        place = before;
    }
    place
}

/// Decodes percent escapes; `%2E` is a dot. `None` if the bytes are no UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        match (byte, digit(ahead.next()), digit(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).ok()?);
                rest = ahead;
            }
            (byte, _, _) => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}
