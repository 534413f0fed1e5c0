//! Asks again and again, and makes the changes that a person has confirmed. A process that is gone
//! is looked for until it is back.

use std::time::Duration;

use hyper::Method;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::state::{Change, Update};
use crate::ask::{AskError, Target};
use crate::reach::Reach;
use crate::status::{BRIEF, Endpoint, Endpoints, Events, Pool, Status, endpoint_path, pool_path};

/// Updates and orders that wait to be taken.
pub(super) const WAITING: usize = 64;

/// What the screen wants.
#[derive(Debug)]
pub(super) enum Order {
    /// Ask now.
    Refresh,
    /// Set this.
    Change(Change),
}

/// Asks at every interval until nobody takes what is told.
pub(super) async fn run(
    reach: Reach,
    every: Duration,
    mut orders: mpsc::Receiver<Order>,
    wanted: watch::Receiver<Vec<String>>,
    tell: mpsc::Sender<Update>,
) {
    let mut tick = interval(every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut feed = Feed { reach, target: None, after: None, has_events: true };
    loop {
        let change = tokio::select! {
            _ = tick.tick() => None,
            order = orders.recv() => match order {
                None => return,
                Some(Order::Refresh) => None,
                Some(Order::Change(change)) => Some(change),
            },
        };
        if let Some(change) = change {
            let changed = feed.change(&change).await.map_err(|error| error.to_string());
            if tell.send(Update::Changed(changed)).await.is_err() {
                return;
            }
        }
        let pools = wanted.borrow().clone();
        for update in feed.look(&pools).await {
            if tell.send(update).await.is_err() {
                return;
            }
        }
        tick.reset_at(Instant::now() + every);
    }
}

struct Feed {
    reach: Reach,
    /// Where it was found. It is looked for again when nobody answers there.
    target: Option<Target>,
    /// The number of the last event that was told.
    after: Option<u64>,
    has_events: bool,
}

impl Feed {
    async fn look(&mut self, pools: &[String]) -> Vec<Update> {
        let mut updates = Vec::new();
        let asked = async {
            let target = match &self.target {
                Some(target) => target.clone(),
                None => {
                    let target = self.reach.find().await?;
                    updates.push(Update::Found(target.place()));
                    self.target.insert(target).clone()
                }
            };
            let status = status(&target, pools).await?;
            updates.push(Update::Status(Box::new(status)));
            if self.has_events {
                updates.extend(self.events(&target).await?);
            }
            Ok::<(), AskError>(())
        };
        if let Err(error) = asked.await {
            self.target = None;
            updates.push(Update::Lost(error.to_string()));
        }
        updates
    }

    async fn events(&mut self, target: &Target) -> Result<Option<Update>, AskError> {
        let path = format!("/v1/events?after={}", self.after.unwrap_or(0));
        match target.ask(Method::GET, &path, "").await {
            Ok(answer) => {
                let told: Events = answer.json()?;
                // A process that was started again counts from nothing.
                self.after = Some(told.next);
                Ok((!told.events.is_empty()).then_some(Update::Events(told.events)))
            }
            // An older Subak tells none.
            Err(AskError::Refused { status: 404, .. }) => {
                self.has_events = false;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    async fn change(&self, change: &Change) -> Result<String, AskError> {
        let target = match &self.target {
            Some(target) => target.clone(),
            None => self.reach.find().await?,
        };
        let path = endpoint_path(&change.pool, &change.endpoint);
        let answer = target.ask(Method::PATCH, &path, &change.body).await?;
        let endpoint: Endpoint = answer.json()?;
        Ok(format!("{}: {}, weight {}", endpoint.name, endpoint.state, endpoint.weight.in_force))
    }
}

/// The status, with the endpoints of these pools at least.
pub(super) async fn status(target: &Target, pools: &[String]) -> Result<Status, AskError> {
    let mut status: Status = target.ask(Method::GET, BRIEF, "").await?.json()?;
    for pool in &mut status.pools {
        let is_wanted = pools.contains(&pool.name);
        if is_wanted && matches!(pool.endpoints, Endpoints::Counted(_)) {
            let path = pool_path(&pool.name);
            match target.ask(Method::GET, &path, "").await {
                Ok(answer) => {
                    let told: Pool = answer.json()?;
                    pool.endpoints = told.endpoints;
                }
                // It has left since.
                Err(AskError::Refused { status: 404, .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(status)
}
