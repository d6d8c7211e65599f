//! One file of assets and data.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha2::{Digest, Sha256};

const PAGE: &str = include_str!("../assets/page.html");
const STYLE: &str = concat!(include_str!("../assets/page.css"), include_str!("../assets/views.css"));
/// Runs before the page is painted.
const THEME: &str = include_str!("../assets/theme.js");

/// The scripts, in an order in which each knows those before it.
const SCRIPTS: &[&str] = &[
    include_str!("../assets/dom.js"),
    include_str!("../assets/data.js"),
    include_str!("../assets/filter.js"),
    include_str!("../assets/table.js"),
    include_str!("../assets/picture.js"),
    include_str!("../assets/summary.js"),
    include_str!("../assets/structures.js"),
    include_str!("../assets/source.js"),
    include_str!("../assets/objects.js"),
    include_str!("../assets/ranges.js"),
    include_str!("../assets/threads.js"),
    include_str!("../assets/chart.js"),
    include_str!("../assets/time.js"),
    include_str!("../assets/calls.js"),
    include_str!("../assets/locality.js"),
    include_str!("../assets/waits.js"),
    include_str!("../assets/compare.js"),
    include_str!("../assets/search.js"),
    include_str!("../assets/main.js"),
];

/// Puts a page together. `title` and `sentence` may hold any characters, as may strings in `data`, which is JSON.
pub fn page(title: &str, sentence: &str, data: &str) -> String {
    let script = format!("(() => {{\n\"use strict\";\n{}}})();\n", SCRIPTS.concat());
    // Nothing is loaded, and nothing runs but these scripts, whatever a name in the data says.
    let policy = format!(
        "default-src 'none'; script-src {} {}; style-src {}; base-uri 'none'; form-action 'none'",
        hash(THEME),
        hash(&script),
        hash(STYLE)
    );
    let (title, sentence) = (escaped(title), escaped(sentence));
    fill(
        PAGE,
        &[
            ("policy", &policy),
            ("title", &title),
            ("sentence", &sentence),
            ("style", STYLE),
            ("theme", THEME),
            ("script", &script),
            ("data", &packed(data)),
        ],
    )
}

/// The hash by which a policy knows a script or a style.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// Deflated and in letters and digits, so that nothing in it can end the element that it stands in.
fn packed(data: &str) -> String {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let deflated = encoder.write_all(data.as_bytes()).and_then(|()| encoder.finish());
    STANDARD.encode(deflated.expect("a vector takes every byte"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Replaces each `{{name}}` by its text, once: texts themselves are not searched.
fn fill(template: &str, texts: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, behind) = after.split_once("}}").expect("a place has an end");
        let text = texts.iter().find(|(known, _)| *known == name).expect("a place has a text").1;
        out += before;
        out += text;
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    #[test]
    fn data_comes_back_and_no_name_leaves_its_place() {
        let hostile = r#"</script><script>alert(1)</script>{{data}} & " '"#;
        let data = format!("{{\"name\":{hostile:?}}}");
        let made = page(hostile, hostile, &data);
        assert_eq!(made.matches("<script").count(), 3, "theme, data and script");
        assert_eq!(made.matches("</script").count(), 3);
        assert!(!made.contains("alert(1)</script>"));
        let (_, after) = made.split_once("id=\"data\">").unwrap();
        let letters = after.split('<').next().unwrap().trim();
        let mut text = String::new();
        ZlibDecoder::new(&STANDARD.decode(letters).unwrap()[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, data);
    }

    #[test]
    fn nothing_is_named_that_would_be_loaded() {
        let made = page("", "", "{}");
        for word in [" src=", "http:", "https:", "@import", "url(", "fetch("] {
            assert!(!made.contains(word), "{word}");
        }
    }
}
