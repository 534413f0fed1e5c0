//! Asks an agent for its line: connect, read to a line end or the end of the connection, parse.
//!
//! A line whose connection was reset counts as none: it may have been cut.

use std::time::Duration;

use subak_base::Address;
use subak_health::{AgentReply, AgentWarning, LINE_MAX, ProbeFailure, line_is_complete};

use crate::check::Phase;
use crate::connection::{Connection, First};
use crate::miss::Miss;

/// What an agent said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentLine {
    /// What it means.
    pub reply: AgentReply,
    /// What was odd about it.
    pub warnings: Vec<AgentWarning>,
}

/// Asks the agent at this address.
///
/// # Errors
/// [`Miss`]: there is no line, and why.
pub async fn agent_line(address: &Address, limit: Duration) -> Result<AgentLine, Miss> {
    let mut phase = Phase::Connecting;
    match tokio::time::timeout(limit, read(address, &mut phase)).await {
        Ok(line) => line,
        Err(_) => Err(phase.over(limit).into()),
    }
}

async fn read(address: &Address, phase: &mut Phase) -> Result<AgentLine, Miss> {
    let connection = Connection::open(address, First::Them).await;
    let mut connection = connection.map_err(|error| Miss::of(&error))?;
    *phase = Phase::Waiting;
    let mut line = Vec::with_capacity(LINE_MAX + 1);
    while !line_is_complete(&line) {
        let received = connection.receive(&mut line).await;
        if received.map_err(|error| Miss::of(&error))? == 0 {
            break;
        }
        *phase = Phase::Reading;
    }
    if line.is_empty() {
        return Err(ProbeFailure::Closed.into());
    }
    let (reply, warnings) = AgentReply::parse(&line);
    Ok(AgentLine { reply, warnings })
}
