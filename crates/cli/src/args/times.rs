//! Lengths of time and duty cycles, as they are typed.

use std::time::Duration;

use memlode_trace::manifest::Burst;

/// The period of a duty cycle that is given in percent.
const PERIOD: Duration = Duration::from_millis(100);
/// Shorter bursts would be all beginning and end: a chunk takes some 50 µs to fill.
const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_secs(3600);

/// `5ms`, `1.5s`, `200us`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim_start() {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        _ => {
            return Err(format!(
                "`{text}` is no length of time: expected a number and us, ms, s or min, as in 5ms"
            ));
        }
    };
    let seconds = number.parse::<f64>().map_err(|_| format!("`{number}` in `{text}` is no number"))? * scale;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is too long"))
}

/// Formats a duration in the form that [`parse_duration`] reads.
pub fn duration_text(duration: Duration) -> String {
    format!("{}s", duration.as_secs_f64())
}

/// Reads `1%`, or `5ms/500ms`: 5 ms in every 500 ms.
pub fn parse_burst(text: &str) -> Result<Burst, String> {
    let (on, period) = if let Some(percent) = text.strip_suffix('%') {
        let percent: f64 = percent.trim().parse().map_err(|_| format!("`{text}` is no percentage"))?;
        if !(percent > 0.0 && percent < 100.0) {
            return Err(format!("`{text}` is not between 0 and 100%"));
        }
        (PERIOD.mul_f64(percent / 100.0), PERIOD)
    } else if let Some((on, period)) = text.split_once('/') {
        (parse_duration(on)?, parse_duration(period)?)
    } else {
        return Err(format!(
            "`{text}` is no duty cycle: expected a percentage, as in 1%, or two times, as in 5ms/500ms"
        ));
    };
    if on >= period || on < SHORTEST || period > LONGEST {
        return Err(format!(
            "`{text}` is no duty cycle: a burst takes at least {} µs, less than its period, and that at most {} s",
            SHORTEST.as_micros(),
            LONGEST.as_secs()
        ));
    }
    Ok(Burst { on_us: on.as_micros() as u64, period_us: period.as_micros() as u64 })
}

/// Formats a duty cycle in the form that [`parse_burst`] reads.
pub fn burst_text(burst: &Burst) -> String {
    format!("{}us/{}us", burst.on_us, burst.period_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duty_cycles() {
        let burst = |on_us, period_us| Ok(Burst { on_us, period_us });
        assert_eq!(parse_burst("1%"), burst(1000, 100_000));
        assert_eq!(parse_burst("5ms/500ms"), burst(5000, 500_000));
        assert_eq!(parse_burst("0.5s/1min"), burst(500_000, 60_000_000));
        assert_eq!(parse_burst(&burst_text(&Burst { on_us: 200, period_us: 7000 })), burst(200, 7000));
        for wrong in [
            "",
            "%",
            "0%",
            "100%",
            "NaN%",
            "-1%",
            "1",
            "5ms",
            "5ms/",
            "5/500ms",
            "5ms/5ms",
            "6ms/5ms",
            "0ms/5ms",
            "1e400s/1min",
            "1s/1000min",
            "5 parsecs/1min",
            "../1s",
        ] {
            assert!(parse_burst(wrong).is_err(), "{wrong}");
        }
    }
}
