//! Events, accountants, calibration, integer noise, selection and auditing statistics.
