//! Attaches the error bars of a prediction to its write amplification.

use super::predicted::PredictedValue;
use super::wa::{DeviceWa, HostWa, WaSide};
use crate::predict::{Bars, Model};

/// The predicted side of write amplification, each value with its interval.
pub(crate) fn with_bars(
    side: &WaSide<f64>,
    bars: Option<&Bars>,
    model: Model,
) -> WaSide<PredictedValue> {
    let with = |value, half_width: Option<f64>| PredictedValue::new(value, half_width, model);
    let host = bars.map(|b| HostWa {
        log: b.host_log,
        page: b.host_page,
        extra: b.host_extra,
        total: b.host_total,
    });
    let by_class = |values: HostWa<f64>, more: f64| HostWa {
        log: with(values.log, host.map(|b| b.log + more)),
        page: with(values.page, host.map(|b| b.page + more)),
        extra: with(values.extra, host.map(|b| b.extra + more)),
        total: with(values.total, host.map(|b| b.total + more)),
    };
    let compression = bars.map_or(0.0, |b| b.compression);
    WaSide {
        host: by_class(side.host, 0.0),
        device: side.device.map(|device| DeviceWa {
            total: with(device.total, bars.map(|b| b.device_total)),
            gc: with(device.gc, bars.map(|b| b.device_gc)),
            nand_over_host: with(device.nand_over_host, bars.map(|b| b.nand_over_host)),
        }),
        csd: side.csd.map(|csd| by_class(csd, compression)),
    }
}
