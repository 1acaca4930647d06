//! What was done since takes a verdict away, and so does time.

use crate::story::check;
use crate::world::policy;

#[test]
fn what_was_done_since_is_asked_about_anew() {
    check(
        policy("tests", ""),
        "prompt | edit | stop | stop | act | stop | stop",
        "tests look task_complete | look task_complete | tests look task_complete | look task_complete",
    );
    // A failure as well: it may be mended where nobody sees it.
    check(
        policy("tests", ""),
        "prompt | edit | tests fail 1 | stop | stop | act | tests pass | stop",
        "tests continue tests:1+0-0 | repeat tests:0+1-0 | tests look task_complete",
    );
    // Declared inputs outlive what nobody can say, and not what installs.
    check(
        policy("tests~", ""),
        "prompt | edit | stop | act | stop | installs | stop",
        "tests look task_complete | look task_complete | tests look task_complete",
    );
}

#[test]
fn what_was_found_long_ago_is_asked_about_anew() {
    check(
        policy("tests", ""),
        "prompt | edit | stop | wait 899 | stop | wait 1 | stop",
        "tests look task_complete | look task_complete | tests look task_complete",
    );
    check(
        policy("tests~", ""),
        "prompt | edit | stop | wait 100000 | stop",
        "tests look task_complete | look task_complete",
    );
}
