//! Counts and sizes, as they are typed: `100k` accesses are 100 000, `64k` of memory are 65 536 bytes.

/// A number of things: digits, and k, M, G or T for powers of 1000. `1.5M` is 1 500 000.
pub fn count(text: &str) -> Result<u64, String> {
    let scale = |unit: &str| power(1000, unit);
    read(text, scale).ok_or_else(|| "expected a number, with k, M, G or T behind it, as in 100k".to_owned())
}

/// The same, as the number of rows or threads of ours.
pub fn small_count(text: &str) -> Result<usize, String> {
    count(text).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

/// A number of bytes: digits, and k, M, G or T, or KiB, MiB, GiB or TiB, for powers of 1024.
pub fn bytes(text: &str) -> Result<u64, String> {
    let scale = |unit: &str| match unit {
        "B" => Some(1),
        _ => power(1024, unit.strip_suffix("iB").unwrap_or(unit)),
    };
    read(text, scale).ok_or_else(|| "expected a size, as in 4096, 64k, 4KiB, 2MiB or 1G".to_owned())
}

fn power(of: u64, unit: &str) -> Option<u64> {
    let exponent = match unit {
        "" => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    Some(of.pow(exponent))
}

/// Digits, perhaps a point and more of them, and a unit. The result is a whole number.
fn read(text: &str, scale: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = u128::from(scale(unit.trim_start())?);
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u128 = u128::from(whole.parse::<u64>().ok()?) * scale;
    let divisor = 10u128.checked_pow(u32::try_from(part.len()).ok().filter(|digits| *digits <= 18)?)?;
    let part = u128::from(part.parse::<u64>().ok()?) * scale;
    if part % divisor != 0 {
        return None;
    }
    u64::try_from(whole + part / divisor).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_decimal() {
        for (text, number) in
            [("0", 0), ("17", 17), ("100k", 100_000), ("1.5M", 1_500_000), ("2 G", 2_000_000_000)]
        {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        for wrong in
            ["", "k", "-1", "1.5", ".5k", "1.k", "0.0001k", "1KiB", "10ms", "18446745T", "1.0.0k", "+1"]
        {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_binary() {
        for (text, number) in [
            ("17", 17),
            ("3k", 3072),
            ("64G", 64 << 30),
            ("4KiB", 4096),
            ("2 MiB", 2 << 20),
            ("8B", 8),
            ("1T", 1 << 40),
        ] {
            assert_eq!(bytes(text), Ok(number), "{text}");
        }
        for wrong in ["", "k", "-1", "1KB", "17179869184G", "1.0001k", "B"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
