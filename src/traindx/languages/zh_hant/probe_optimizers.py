"""O010 decay-on-norms, O011 optimizer-coverage, and what a pass costs."""

MESSAGES: dict[str, str] = {
    "the optimizer has no weight decay": "最佳化器沒有權重衰減",
    "how fast the decay of {kind} is depends on gradients": "{kind} 的衰減速度取決於梯度",
    "steps": "步",
    "Steps in which weight decay alone halves the weights of normalization layers.": (
        "單靠權重衰減，使正規化層的權重減半所需的步數。"
    ),
    "Weight decay quickly pulls the weights of normalization layers to zero.": (
        "權重衰減很快地將正規化層的權重拉向零。"
    ),
    "weight decay halves {params} of normalization layers of {model} every {steps:.0f} steps, "
    "first `{first}`": (
        "權重衰減每 {steps:.0f} 步就使 {model} 的正規化層的 {params}減半，首先是 `{first}`"
    ),
    "The group with the weight decay holds all parameters.": "有權重衰減的那一組持有所有參數。",
    'rest = {{"params": [p for p in {model}.parameters() if p.dim() < 2], "weight_decay": 0.0}}': (
        'rest = {{"params": [p for p in {model}.parameters() if p.dim() < 2], "weight_decay": 0.0}}'
    ),
    "Parameters with a gradient that no optimizer holds.": "有梯度而沒有最佳化器持有的參數個數。",
    "Parameters that the loss reaches are in no optimizer, or in one twice.": (
        "損失所及的參數不在任何最佳化器裡，或在同一個裡出現兩次。"
    ),
    "The optimizer was given a list that is not the model's.": "交給最佳化器的並非模型的參數列表。",
    "optimizer = {kind}({model}.parameters(), …)  # once the model is complete": (
        "optimizer = {kind}({model}.parameters(), …)  # 在模型完成之後"
    ),
    "no optimizer holds {params} of {model} that the loss reaches: {names}": (
        "{model} 有 {params}為損失所及，卻沒有最佳化器持有：{names}"
    ),
    "{optimizer} holds {params} of {model} twice: {names}": (
        "{optimizer} 重複持有 {model} 的 {params}：{names}"
    ),
    "parameters of another optimizer": "另一個最佳化器的參數",
    "Elements of all parameters.": "所有參數的元素個數。",
    "Elements of those that take gradients.": "其中需要梯度的參數的元素個數。",
    "bytes": "位元組",
    "Memory of all parameters.": "所有參數的記憶體。",
    "What autograd keeps of a batch for backward, besides parameters and buffers.": (
        "autograd 為反向傳遞保留的一個批次的資料，不含參數與緩衝區。"
    ),
    "Time of the model and its loss on a batch.": "模型及其損失處理一個批次的時間。",
    "Time of the backward pass of a batch.": "一個批次的反向傳遞的時間。",
}
