"""O013 learning-rate-range, and the probe that feeds it."""

MESSAGES: dict[str, str] = {
    "The learning rate lies far outside of those that lower the loss of the first batch.": (
        "學習率遠在能降低第一個批次損失的範圍之外。"
    ),
    "the loss is not finite": "損失不是有限值",
    "no learning rate lowers the loss of one batch": "沒有任何學習率能降低單一批次的損失",
    "the optimizer has no learning rate": "最佳化器沒有學習率",
    "the optimizer steps only with a closure": "最佳化器只能以閉包（closure）更新",
    "the learning rate {rate:.2g} of {optimizer} lies outside of {low:.2g} to {high:.2g}, which "
    "lower the loss of one batch in {steps} steps": (
        "{optimizer} 的學習率 {rate:.2g} 在 {low:.2g} 到 {high:.2g} 之外；"
        "這個範圍能在 {steps} 步內降低單一批次的損失"
    ),
    "lr={rate:.2g}": "lr={rate:.2g}",
    "It is too small to move the loss.": "它太小，無法改變損失。",
    "It is so large that the loss rises.": "它太大，使損失上升。",
    "the schedule: the rate it starts from counts": "排程：以其起始的學習率為準",
    "The learning rate of the optimizer's first group, before training.": (
        "訓練開始前，最佳化器第一組的學習率。"
    ),
    "The least learning rate that is worth trying, by short runs on one batch.": (
        "以單一批次上的短訓練測得、值得嘗試的最小學習率。"
    ),
    "The greatest learning rate that is worth trying, by the same runs.": (
        "以同樣的訓練測得、值得嘗試的最大學習率。"
    ),
}
