"""What can go wrong, in one sentence each: what, where, and what to do."""


class ProGAPError(Exception):
    """Everything that ProGAP raises of its own is one of these."""


class SettingsError(ProGAPError, ValueError):
    """A setting out of its range, one that decides nothing, or settings that contradict each other."""


class DataError(ProGAPError, ValueError):
    """Data that cannot be read, or cannot be trained on."""


class PrivacyError(ProGAPError, ValueError):
    """A question that the accountant cannot answer."""


class LedgerError(ProGAPError, RuntimeError):
    """The ledger refused a charge, or could not be read or written. Nothing was trained."""


class ReleaseError(ProGAPError, OSError):
    """A release, or the folder of a run, that cannot be opened, written or trusted."""


class Stopped(ProGAPError, RuntimeError):
    """A callback stopped the run."""


class BudgetWarning(UserWarning):
    """Private fits on the same data add up; the message has the epsilon of all of them together."""


class NotPrivateWarning(UserWarning):
    """What was trained has no guarantee."""


class AudienceWarning(UserWarning):
    """Predictions that are not for everyone: the message says for whom."""


# pydoc and tracebacks show the names that users import.
for _name in list(globals()):
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = "progap"
del _name
