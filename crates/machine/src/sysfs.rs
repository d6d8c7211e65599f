//! Caches as Linux shows them: `/sys/devices/system/cpu/cpu*/cache/index*`.

use std::collections::BTreeMap;
use std::path::Path;

/// One `index*` directory of one processor's cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheInfo {
    pub level: u32,
    pub bytes: u64,
    pub ways: u32,
    pub line_bytes: u32,
    /// Online processors (hardware threads) that use the same cache, ascending.
    pub shared: Vec<u32>,
    /// The directory.
    pub place: String,
}

/// Data and unified caches of each online processor, innermost first. Processors without any are
/// left out. The error names the incomplete directory.
pub fn read(sys: &Path) -> Result<BTreeMap<u32, Vec<CacheInfo>>, String> {
    let root = sys.join("devices/system/cpu");
    let mut processors = BTreeMap::new();
    for cpu in numbered(&root, "cpu") {
        let directory = root.join(format!("cpu{cpu}/cache"));
        let mut caches = Vec::new();
        for index in numbered(&directory, "index") {
            caches.extend(cache(&directory.join(format!("index{index}")), cpu)?);
        }
        caches.sort_by_key(|cache: &CacheInfo| cache.level);
        if !caches.is_empty() {
            processors.insert(cpu, caches);
        }
    }
    Ok(processors)
}

/// Numbers `n` of the entries `<prefix><n>` of a directory, ascending; none if there is no such
/// directory.
fn numbered(directory: &Path, prefix: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
    let mut numbers: Vec<u32> = entries.filter_map(|entry| number(entry.file_name().to_str()?)).collect();
    numbers.sort_unstable();
    numbers
}

fn cache(directory: &Path, cpu: u32) -> Result<Option<CacheInfo>, String> {
    let text = |file: &str| -> Result<String, String> {
        let path = directory.join(file);
        let text = memlode_files::read_text(&path, memlode_files::SMALL)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(text.trim().to_string())
    };
    let number = |file: &str| -> Result<u64, String> {
        let text = text(file)?;
        let wrong = || format!("{}: expected a number, found `{text}`", directory.join(file).display());
        text.parse().map_err(|_| wrong())
    };
    if text("type")? == "Instruction" {
        return Ok(None);
    }
    let size = text("size")?;
    let wrong_size = || format!("{}: expected a size, found `{size}`", directory.join("size").display());
    let bytes = parse_size(&size).ok_or_else(wrong_size)?;
    let line_bytes = number("coherency_line_size")?;
    // 0 or absent ways: fully associative, or unknown to the kernel; the number of sets tells them apart.
    let ways = match number("ways_of_associativity") {
        Ok(ways) if ways > 0 => ways,
        _ => {
            let sets = number("number_of_sets")?;
            let set_lines = sets.checked_mul(line_bytes).and_then(|set| bytes.checked_div(set));
            set_lines.ok_or_else(|| format!("{}: neither ways nor sets are given", directory.display()))?
        }
    };
    let shared = text("shared_cpu_list").ok().and_then(|list| parse_list(&list));
    let small = |n: u64| u32::try_from(n).map_err(|_| format!("{}: {n} is absurd", directory.display()));
    Ok(Some(CacheInfo {
        level: small(number("level")?)?,
        bytes,
        ways: small(ways)?,
        line_bytes: small(line_bytes)?,
        shared: shared.filter(|list| list.contains(&cpu)).unwrap_or_else(|| vec![cpu]),
        place: directory.display().to_string(),
    }))
}

/// `32K`, `1024K`, `36M`.
fn parse_size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1u64 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        b'G' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|bytes| *bytes > 0)
}

/// `0-3,8,10-11`. More than 65,536 processors are refused.
fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut list = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        if last < first || last > 1 << 16 {
            return None;
        }
        list.extend(first..=last);
    }
    list.sort_unstable();
    list.dedup();
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_lists() {
        assert_eq!(parse_size("32K"), Some(32 << 10));
        assert_eq!(parse_size("105M"), Some(105 << 20));
        assert_eq!(parse_size("512"), Some(512));
        assert_eq!(parse_size("0K"), None);
        assert_eq!(parse_size("K"), None);
        assert_eq!(parse_size(""), None);
        assert_eq!(parse_list("0-2,8,10-11"), Some(vec![0, 1, 2, 8, 10, 11]));
        assert_eq!(parse_list("3,1"), Some(vec![1, 3]));
        assert_eq!(parse_list("3-1"), None);
        assert_eq!(parse_list("0-4000000000"), None);
        assert_eq!(parse_list("x"), None);
    }
}
