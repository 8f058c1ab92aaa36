"""Why a rule could say nothing of a run."""

MESSAGES: dict[str, str] = {
    "needs preflight": "需要訓練前檢查（preflight）",
    "needs a trial": "需要對照試驗（trial）",
    "needs several ranks": "需要多個 rank",
    "no training step was measured": "沒有量測到任何訓練步",
    "{quantities} not measured": "未量測 {quantities}",
    "{point} not measured: {reason}": "未量測 {point}：{reason}",
    "the backward graph was not walked": "沒有走訪反向計算圖",
    "the gradients of {models} are not finite": "{models} 的梯度不是有限值",
    "needs at least {layers} trainable weight matrices of one kind in a model": (
        "同一模型中至少需要 {layers} 個同類且可訓練的權重矩陣"
    ),
    "no normalization layer with running statistics in {models}": (
        "沒有帶 running 統計量的正規化層（{models}）"
    ),
    "any model seen": "所有看到的模型",
    "no evaluation pass in eval mode was seen after training began": (
        "訓練開始後，沒有看到任何 eval 模式下的評估"
    ),
    "the rule failed: {error}": "規則執行失敗：{error}",
    "no optimizer was seen": "沒有看到任何最佳化器",
}
