//! Certificates by ACME reach the listeners: when a configuration comes in force, and whenever others
//! have been issued or challenges wait.

use subak_acme::{Acme, Told};
use subak_admin::AcmeView;
use subak_config::Config;
use subak_net::tls::Origin;

use super::Control;
use crate::application::Snapshot;

/// Gives every listener of a snapshot what it is to show.
pub(super) fn install(acme: &Acme, config: &Config, snapshot: &Snapshot) {
    let challenges = acme.challenges();
    for service in snapshot.services.values() {
        let listener = config.listener(service.name());
        if let (Some(server), Some(tls)) =
            (service.tls(), listener.and_then(|one| one.tls.as_ref()))
        {
            server.store().set(Origin::Acme, acme.certificates(&tls.acme));
            server.challenges().set(challenges.over_tls.iter().cloned());
        }
        if let Some(answers) = service.acme_answers() {
            answers.set(challenges.over_http.iter().map(|(token, answer)| (&**token, &**answer)));
        }
    }
}

fn view(told: Told) -> AcmeView {
    AcmeView {
        names: told.names.iter().map(ToString::to_string).collect(),
        state: told.state.name(),
        issuer: told.issuer,
        life: told.life,
        next_order: told.next_order,
        by_authority: told.by_window,
        failures: told.failures,
        problem: told.problem,
        waits: told.waits,
        file: told.file,
        issued: told.counts.issued,
        failed: told.counts.failed,
    }
}

impl Control {
    /// How far certificates by ACME are.
    pub(super) fn told_of_acme(&self) -> Vec<AcmeView> {
        self.acme.told().into_iter().map(view).collect()
    }

    /// Takes over what ACME has got since, and tells of it. Called as often as pools are ticked.
    pub(crate) fn attend_acme(&mut self) {
        for text in self.acme.news() {
            self.events.keep("info", None, None, text);
        }
        if self.acme.has_changed() {
            install(&self.acme, &self.config, &self.snapshot);
        }
    }
}
