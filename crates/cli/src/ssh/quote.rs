//! Words for a remote shell.

/// `word` so that sh, bash, zsh, fish and csh all read exactly it.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // Between single quotes only the single quote itself is special, and in fish also a backslash before it.
    let mut quoted = String::from("'");
    for c in word.chars() {
        match c {
            '\'' => quoted.push_str("'\"'\"'"),
            '\\' => quoted.push_str("'\"\\\\\"'"),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_reads_the_word_back() {
        for word in
            ["", "foot", "a b", "it's", "$HOME `id` \"x\"", "back\\slash\\", "'", "*?[]{}~#;&|<>()!", "ä\tß"]
        {
            let output = std::process::Command::new("/bin/sh")
                .args(["-c", &format!("printf %s {}", quote(word))])
                .output()
                .expect("sh");
            assert_eq!(String::from_utf8_lossy(&output.stdout), word, "{}", quote(word));
        }
    }

    #[test]
    fn plain_words_stay_readable() {
        assert_eq!(quote("/usr/bin/wayferry"), "/usr/bin/wayferry");
        assert_eq!(quote("--port=60000-61000"), "--port=60000-61000");
    }
}
