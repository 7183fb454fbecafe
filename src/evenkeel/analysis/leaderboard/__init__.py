"""Runs in order of their headline: those that do not differ significantly share a rank.

Every pair of a board is tested as `compare` tests it. What a board needs of a run's records is kept in the
user's cache, by the records' size and time, because the records of many runs take seconds to read: it is
written when a run ends, or when a board first needs it.
"""

from __future__ import annotations

from evenkeel.analysis.leaderboard.boards import Leaderboard, leaderboard
from evenkeel.analysis.leaderboard.entrants import store_values
from evenkeel.analysis.leaderboard.ranks import Standing

__all__ = ["Leaderboard", "Standing", "leaderboard", "store_values"]
