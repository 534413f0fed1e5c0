//! The agent's line: arbitrary bytes, and lines put together from words whose meaning is known.

use proptest::prelude::*;
use subak_health::{Admin, AgentReply, AgentWarning, LINE_MAX, Operational, line_is_complete};

#[derive(Clone, Debug)]
enum Word {
    Weight(u32),
    Limit(u32),
    Admin(Admin, &'static str),
    Service(Operational, &'static str),
    Unknown(String),
}

fn word() -> impl Strategy<Value = Word> {
    let admins = [(Admin::Ready, "Ready"), (Admin::Drain, "drain"), (Admin::Maintenance, "MAINT")];
    let services = [
        (Operational::Up, "up"),
        (Operational::Down, "DOWN"),
        (Operational::Stopped, "Stopped"),
        (Operational::Failed, "fail"),
    ];
    prop_oneof![
        (0..=25_600_u32).prop_map(Word::Weight),
        any::<u32>().prop_map(Word::Limit),
        prop::sample::select(admins.to_vec()).prop_map(|(admin, word)| Word::Admin(admin, word)),
        prop::sample::select(services.to_vec())
            .prop_map(|(service, word)| Word::Service(service, word)),
        "[a-z]{1,3}x".prop_map(Word::Unknown),
    ]
}

proptest! {
    #[test]
    fn words_in_any_order_say_what_they_say(
        words in prop::collection::vec((word(), "[ \t,]{1,3}"), 0..12),
        reason in "[a-z #,]{0,20}",
        end in prop::sample::select(vec!["", "\n", "\r\n", "\rup maint 1%", "\n\n"]),
    ) {
        let mut line = String::new();
        let mut expected = AgentReply::default();
        for (word, separator) in &words {
            line += &match word {
                Word::Weight(percent) => format!("{percent}%"),
                Word::Limit(limit) => format!("maxCONN:{limit}"),
                Word::Admin(_, word) | Word::Service(_, word) => (*word).to_owned(),
                Word::Unknown(word) => word.clone(),
            };
            line += separator;
            match word {
                Word::Weight(percent) => expected.weight_percent = Some(*percent),
                Word::Limit(limit) => expected.max_in_flight = Some(*limit),
                Word::Admin(admin, _) => expected.admin = Some(*admin),
                Word::Service(service, _) => expected.operational = Some(*service),
                Word::Unknown(_) => {}
            }
        }
        if expected.operational.is_some() && !reason.trim().is_empty() {
            expected.reason = Some(reason.trim().to_owned());
        }
        line = format!("{line}#{reason}{end}");
        let (reply, warnings) = AgentReply::parse(line.as_bytes());
        prop_assert_eq!(&reply, &expected, "{:?}", line);
        for (word, _) in &words {
            if let Word::Unknown(word) = word {
                let warning = AgentWarning::UnknownWord(word.clone());
                prop_assert!(warnings.contains(&warning) || warnings.len() == 8);
            }
        }
        prop_assert_eq!(line_is_complete(line.as_bytes()), !end.is_empty());
    }

    #[test]
    fn no_bytes_panic_and_what_is_kept_is_bounded(
        bytes in prop::collection::vec(any::<u8>(), 0..2 * LINE_MAX),
        start in "(up|DOWN|75%|maxconn:|#|,| ){0,6}",
    ) {
        let received = [start.as_bytes(), &bytes].concat();
        let (reply, warnings) = AgentReply::parse(&received);
        prop_assert!(warnings.len() <= 8);
        for warning in &warnings {
            prop_assert!(warning.to_string().len() < 400);
        }
        if let Some(reason) = &reply.reason {
            prop_assert!(reason.chars().count() <= 200 && !reason.chars().any(char::is_control));
            prop_assert!(reply.operational.is_some());
        }
        // What comes behind the line end, or behind what is read, changes nothing.
        if line_is_complete(&received) {
            let more = [&received[..], b" down maint 3%\n"].concat();
            prop_assert_eq!(AgentReply::parse(&more), (reply, warnings));
        }
    }
}
