//! The rig's checkpoints and openings: one thread takes their steps, and stops between them.

use std::sync::Arc;

use treering_engine::events::Event;
use treering_engine::{Progress, Task};

use super::actors::{Actor, NOWHERE, Outcome, Said, Stops};
use super::rig::{LATCH_WAIT, Not, Rig, Step, Sweep, differs, open};
use crate::mirror::wal_recovery::{Phase, State};

impl Rig<'_> {
    pub(super) fn begin_checkpoint(&mut self, from: &State) -> Step {
        let store = self.store()?.clone();
        self.keeper.begin(
            |point| matches!(point, Some(Event::CheckpointBegins { .. })),
            move || Outcome::Done(store.pump(Task::Checkpoint).map(drop)),
        );
        let Said::Stopped(_) = self.keeper.wait() else {
            return differs("no checkpoint began");
        };
        self.keeper.go_on(NOWHERE);
        // The checkpoint waits for a client that holds a page's latch.
        if from.logged().next().is_some() {
            return Ok(());
        }
        match self.keeper.wait() {
            Said::Finished(Outcome::Done(Ok(()))) => Ok(()),
            _ => differs("the checkpoint did not begin"),
        }
    }

    /// Checks that the beginning of the checkpoint does not still wait for latches.
    pub(super) fn keeper_is_free(&mut self) -> Step {
        if self.keeper.is_busy() {
            self.settle_keeper()?;
        }
        if self.keeper.is_busy() {
            return Err(Not::Able(
                "a checkpoint waits for writers that came after its begin, too",
            ));
        }
        Ok(())
    }

    /// Waits until the beginning of the checkpoint is over, or waits for a latch again.
    pub(super) fn settle_keeper(&mut self) -> Step {
        let others = self.actors.iter().any(Actor::is_stopped);
        let said = if others {
            self.keeper.wait_for(LATCH_WAIT)
        } else {
            Some(self.keeper.wait())
        };
        match said {
            None | Some(Said::Finished(Outcome::Done(Ok(())))) => Ok(()),
            Some(_) => differs("the checkpoint did not begin"),
        }
    }

    pub(super) fn pump_to_the_end(&mut self, stops: Stops) -> Step {
        let store = self.store()?.clone();
        self.keeper.begin(stops, move || {
            Outcome::Done(loop {
                match store.pump(Task::Checkpoint) {
                    Ok(Progress::More) => {}
                    Ok(Progress::Idle) => break Ok(()),
                    Err(e) => break Err(e),
                }
            })
        });
        Ok(())
    }

    pub(super) fn flush_pages(&mut self, from: &State) -> Step {
        let stops: Stops = |point| matches!(point, Some(Event::PagesFlushed { .. }));
        if from.phase() == Phase::Opening {
            if self.sweep != Sweep::Written {
                self.sweep_to_the_flush()?;
            }
            return self.opening_stops(stops, stops);
        }
        self.keeper_is_free()?;
        self.pump_to_the_end(stops)?;
        match self.keeper.wait() {
            Said::Stopped(_) => Ok(()),
            _ => differs("the checkpoint did not flush its pages"),
        }
    }

    pub(super) fn checkpoint_goes_on(&mut self, from: &State, stops: Stops) -> Step {
        let opening = from.phase() == Phase::Opening;
        let actor = if opening {
            &mut self.opener
        } else {
            &mut self.keeper
        };
        actor.go_on(stops);
        match actor.wait() {
            Said::Stopped(_) => Ok(()),
            _ => differs("the checkpoint did not go on"),
        }
    }

    pub(super) fn truncate_log(&mut self) -> Step {
        self.keeper.go_on(NOWHERE);
        match self.keeper.wait() {
            Said::Finished(Outcome::Done(Ok(()))) => Ok(()),
            _ => differs("the checkpoint did not end"),
        }
    }

    pub(super) fn load_superblock(&mut self) -> Step {
        let (device, options) = (self.device.clone(), self.setup.options().clone());
        self.opener.begin(
            |point| matches!(point, Some(Event::RecoveryBegins { .. })),
            move || Outcome::Opened(open(&device, &options).map(Box::new)),
        );
        match self.opener.wait() {
            Said::Stopped(_) => Ok(()),
            _ => differs("recovery did not begin"),
        }
    }

    pub(super) fn opening_stops(&mut self, stops: Stops, wanted: Stops) -> Step {
        self.opener.go_on(stops);
        match self.opener.wait() {
            Said::Stopped(point) if wanted(&point) => Ok(()),
            Said::Stopped(point) => differs(format!("recovery stands at {point:?}")),
            Said::Finished(_) => differs("opening has ended"),
        }
    }

    /// Lets the sweep of an opening continue to the next page, or to its end.
    pub(super) fn sweep_on(&mut self) -> Step {
        self.opener
            .go_on(|point| matches!(point, None | Some(Event::PageCopied { .. })));
        self.sweep = match self.opener.wait() {
            Said::Stopped(None) => Sweep::Written,
            Said::Stopped(Some(_)) => Sweep::Copied,
            Said::Finished(_) => return differs("opening has ended"),
        };
        Ok(())
    }

    pub(super) fn write_back_of_opening(&mut self, _k: u8) -> Step {
        if self.sweep == Sweep::Begun {
            self.sweep_on()?;
        }
        if self.sweep != Sweep::Copied {
            return differs("the sweep found no page to write");
        }
        self.sweep_on()
    }

    pub(super) fn sweep_to_the_flush(&mut self) -> Step {
        self.sweep_on()?;
        if self.sweep != Sweep::Written {
            return differs("the sweep found a page to write");
        }
        Ok(())
    }

    pub(super) fn finish_recovery(&mut self) -> Step {
        self.opener.go_on(NOWHERE);
        match self.opener.wait() {
            Said::Finished(Outcome::Opened(Ok(store))) => {
                self.store = Some(Arc::from(store));
                self.clients = Default::default();
                Ok(())
            }
            _ => differs("opening failed"),
        }
    }
}
