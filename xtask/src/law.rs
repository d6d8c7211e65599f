//! Placeholder
use anyhow::Result;
use std::path::Path;
pub fn check(_root: &Path) -> Result<Vec<String>> {
    Ok(Vec::new())
}
