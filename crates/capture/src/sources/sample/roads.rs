//! Where the samples came from, as a sentence for the user.

const BY_EVENTS: &str = "sampled from outside the program, by performance events on the CPU clocks of its threads";
const NO_TIMER: &str = "got no timer (the limit on pending signals)";

/// What is known of the threads of a run.
pub struct Roads<'a> {
    /// The agent takes samples.
    pub has_agent: bool,
    /// Threads for which the agent got no timer.
    pub without_timer: u64,
    /// Threads that were sampled from outside.
    pub outside: u64,
    /// Threads with a timer that were sampled from outside, because threads waited for CPUs.
    pub waiting: u64,
    /// Why none can be.
    pub refused: Option<&'a str>,
}

impl Roads<'_> {
    /// Says where the samples came from, if not all of them from timers; `true` if threads were not sampled at all.
    pub fn sentence(&self) -> (String, bool) {
        let (usual, is_warning) = self.without_timers();
        if self.waiting == 0 {
            return (usual, is_warning);
        }
        let waiting = format!("threads waited for CPUs, so registers of {} were {BY_EVENTS}", threads(self.waiting));
        (if usual.is_empty() { waiting } else { format!("{usual}; {waiting}") }, is_warning)
    }

    fn without_timers(&self) -> (String, bool) {
        let &Self { has_agent, without_timer, outside, waiting: _, refused } = self;
        let threads = threads(without_timer);
        let raise = "raise the limit (ulimit -i)";
        match refused {
            Some(refused) if without_timer > 0 => {
                (format!("{threads} {NO_TIMER}, so their registers were not sampled: {raise}. From outside: {refused}"), true)
            }
            _ if without_timer > outside => {
                (format!("{threads} {NO_TIMER}, {outside} of them were {BY_EVENTS}; the others ended too soon: {raise}"), true)
            }
            _ if outside == 0 => (String::new(), false),
            _ if !has_agent => (format!("registers were {BY_EVENTS}"), false),
            _ if without_timer == outside => (format!("{threads} {NO_TIMER}: their registers were {BY_EVENTS}"), false),
            _ => (format!("{} without the agent or a timer: their registers were {BY_EVENTS}", self::threads(outside)), false),
        }
    }
}

fn threads(count: u64) -> String {
    if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the road of the samples is named where it is not the usual one, and that threads without samples are a warning.
    #[test]
    fn the_road_is_named() {
        let sentence =
            |has_agent, without_timer, outside, refused| Roads { has_agent, without_timer, outside, waiting: 0, refused }.sentence();
        for refused in [None, Some("forbidden")] {
            assert_eq!(sentence(true, 0, 0, refused), (String::new(), false));
        }
        for ((has_agent, without_timer, outside, refused), (start, end, is_warning)) in [
            ((false, 0, 3, None), ("registers were sampled from outside the program", "CPU clocks of its threads", false)),
            ((true, 2, 2, None), ("2 threads got no timer (the limit on pending signals): their", "CPU clocks of its threads", false)),
            ((true, 0, 1, None), ("1 thread without the agent or a timer: their", "CPU clocks of its threads", false)),
            ((true, 5, 2, None), ("5 threads got no timer (the limit on pending signals), 2 of them were", "(ulimit -i)", true)),
            ((true, 1, 0, Some("forbidden")), ("1 thread got no timer", "(ulimit -i). From outside: forbidden", true)),
        ] {
            let said = sentence(has_agent, without_timer, outside, refused);
            assert!(said.0.starts_with(start) && said.0.ends_with(end) && said.1 == is_warning, "{said:?}");
        }
        let waited = |without_timer, outside| Roads { has_agent: true, without_timer, outside, waiting: 4, refused: None }.sentence().0;
        assert!(
            waited(0, 0).starts_with("threads waited for CPUs, so registers of 4 threads were sampled from outside"),
            "{}",
            waited(0, 0)
        );
        assert!(waited(2, 2).contains(" its threads; threads waited for CPUs"), "{}", waited(2, 2));
    }
}
