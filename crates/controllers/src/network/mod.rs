//! Services: which addresses stand behind them.
